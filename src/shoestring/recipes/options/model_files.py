"""The options that name a fitted model: `revocations` and `lifetimes`.

Both also accept the name of a default that needs no file. Files are made by `shoestring market fit` and
`shoestring lifetimes fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.market.prices import utc
from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.pinned_file import FileOption

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource
    from shoestring.models.revocation.saved import AnyModel, SavedModel
    from shoestring.policies.placement.revocation_risk import AssumedRate, FromPrices

REVOCATIONS = "revocations"
ASSUMED, FREQUENCY, RISES = "assumed", "frequency", "rises"
LEARN_NOTHING = ("frequency", "rises", "prior")
"""Saved models that look at past prices at each use, or at none: they keep nothing of their training data."""
MODEL_FILE = FileOption(REVOCATIONS, (ASSUMED, FREQUENCY, RISES), "revocation model", "shoestring market fit")


def chosen_risk(options: Options, default: AssumedRate | FromPrices) -> AssumedRate | FromPrices:
    """By the option; a placement has its own default."""
    from shoestring.policies.placement.revocation_risk import AssumedRate, FromPrices

    match options.text(REVOCATIONS, ASSUMED if isinstance(default, AssumedRate) else RISES):
        case "assumed":
            return AssumedRate()
        case "frequency":
            from shoestring.models.revocation.frequency import EmpiricalFrequency

            return FromPrices(EmpiricalFrequency())
        case "rises":
            return FromPrices()
        case path:
            return FromPrices(_checked(_read(path).model, options.spec))


def refuse_hindsight(spec: RunSpec, start: float) -> None:
    """A model that was trained on the prices of the run itself would know the future."""
    path = MODEL_FILE.named(spec)
    if path is None:
        return
    saved = _read(path)
    if saved.name in LEARN_NOTHING or saved.trained_until <= start:
        return
    raise SpecError(
        f"options.{REVOCATIONS}: this model was trained on prices until {utc(saved.trained_until)}, and the run "
        f"replays prices from {utc(start)} on: it would know the future",
        hint="train it on older prices (shoestring market fit --until), or replay later ones",
    )


def _read(named: str) -> SavedModel:
    from shoestring.models.revocation.saved import decoded

    return decoded(*MODEL_FILE.read(named))


def _checked(model: AnyModel, spec: RunSpec) -> AnyModel:
    """A net knows only the markets it was trained on; refuse others now, not in the middle of a run."""
    nets = getattr(model, "nets", None)
    strange = [x.offer for x in spec.listings if x.offer.spot and nets is not None and str(x.offer) not in nets]
    if strange:
        raise SpecError(
            f"options.{REVOCATIONS}: this model was not trained on {strange[0]}",
            hint="train it on prices of all machines and zones of the run, or use a model of all markets (trees)",
        )
    return model


LIFETIMES, KNOWN = "lifetimes", "known"
LIFETIMES_FILE = FileOption(LIFETIMES, (KNOWN,), "lifetime model", "shoestring lifetimes fit")


def lifetime_source(options: Options) -> LifetimeSource:
    """The lifetimes of machines."""
    from shoestring.models.lifetimes.saved import decoded
    from shoestring.models.lifetimes.source import LifetimeSource

    named = options.text(LIFETIMES, KNOWN)
    return LifetimeSource() if named == KNOWN else LifetimeSource(decoded(*LIFETIMES_FILE.read(named)))
