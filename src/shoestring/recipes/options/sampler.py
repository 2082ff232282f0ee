"""The option `sampler`: where a recipe's new configurations come from.

random (as everywhere), tpe (our model, as in the recipe of that name), optuna:NAME (a sampler of Optuna's).
"""

from __future__ import annotations

from shoestring.errors import SpecError
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, Sampler
from shoestring.policies.search.samplers.tpe_sampler import FromModel
from shoestring.recipes.options.parse import Options
from shoestring.values import did_you_mean

OPTUNA = "optuna"


def chosen_sampler(options: Options) -> Sampler:
    asked = options.text("sampler", "random")
    library, colon, name = asked.partition(":")
    if colon and library == OPTUNA:
        from shoestring.policies.search.samplers.optuna import FromOptuna

        return FromOptuna.named(name)
    samplers: dict[str, Sampler] = {"random": RANDOM_SAMPLER, "tpe": FromModel()}
    if asked not in samplers:
        raise SpecError(f"options.sampler={asked!r} is unknown", hint=did_you_mean(asked, [*samplers, f"{OPTUNA}:tpe"]))
    return samplers[asked]
