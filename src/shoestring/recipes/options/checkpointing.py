"""The option `checkpointing`: when to save."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.kernel.policy import Policy
from shoestring.policies.checkpointing.on_notice import OnNotice
from shoestring.policies.checkpointing.periodic import Periodic
from shoestring.recipes.options.model_files import lifetime_source
from shoestring.recipes.options.parse import Options

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource

SAVE_EVERY_S = 900.0
HOUR_S = 3600.0
CHECKPOINTING = ("periodic", "on_notice", "programme", "young_daly", "young_daly_1h", "none")


def checkpointing_policies(
    options: Options, default: str, lifetimes: LifetimeSource | None = None
) -> tuple[Policy, ...]:
    """The policy that decides when to save. With none, workers still save on a preemption notice."""
    word = options.word("checkpointing", (default, *(name for name in CHECKPOINTING if name != default)))
    match word:
        case "periodic":
            return (Periodic(every_s=options.seconds("every_s", SAVE_EVERY_S)),)
        case "on_notice":
            return (OnNotice(),)
        case "none":
            return ()
    lifetimes = lifetimes or lifetime_source(options)
    if word == "programme":
        from shoestring.policies.checkpointing.by_lifetime import ByLifetime

        return (ByLifetime(lifetimes),)
    from shoestring.policies.checkpointing.young_daly import YoungDaly

    return (YoungDaly(lifetimes, mean_life_s=HOUR_S if word == "young_daly_1h" else None),)
