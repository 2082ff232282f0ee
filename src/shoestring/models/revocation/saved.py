"""Revocation models by name, saved as JSON and read back strictly. No pickle: a stranger's model can do no harm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from shoestring.errors import DataError, SpecError
from shoestring.kernel.types import Fact
from shoestring.models.revocation.examples import Examples
from shoestring.models.revocation.frequency import EmpiricalFrequency
from shoestring.models.revocation.logistic import Logistic, fit_logistic
from shoestring.models.revocation.lstm import RevPred, Tributary
from shoestring.models.revocation.lstm_training import fit_revpred, fit_tributary
from shoestring.models.revocation.rates import AvailabilityFrequency, InterruptionPrior
from shoestring.models.revocation.rises import RelativeRises
from shoestring.models.revocation.trees import Trees, fit_trees
from shoestring.values import did_you_mean

AnyModel = (
    Trees
    | Logistic
    | EmpiricalFrequency
    | RelativeRises
    | InterruptionPrior
    | AvailabilityFrequency
    | RevPred
    | Tributary
)

DEFAULT = "trees"
FITTING: Mapping[str, Callable[[Examples, int], AnyModel]] = {
    "trees": lambda examples, seed: fit_trees(examples, seed=seed),
    "logistic": lambda examples, _: fit_logistic(examples),
    "frequency": lambda _examples, _seed: EmpiricalFrequency(),
    "rises": lambda _examples, _seed: RelativeRises(),
    "prior": lambda _examples, _seed: InterruptionPrior(),
    "revpred": lambda examples, seed: fit_revpred(examples, seed=seed),
    "tributary": lambda examples, seed: fit_tributary(examples, seed=seed),
}
"""Models by name, each from examples and a seed; `frequency`, `rises` and `prior` learn nothing from them."""


def fit(name: str, examples: Examples, seed: int = 0) -> AnyModel:
    if name not in FITTING:
        raise SpecError(f"model {name!r} is unknown", hint=did_you_mean(name, FITTING))
    return FITTING[name](examples, seed)


class SavedModel(Fact, frozen=True, kw_only=True):
    """A model, and what it was trained on."""

    format: Literal["shoestring revocation model 1"] = "shoestring revocation model 1"
    name: str
    trained_from: float
    trained_until: float
    """End of the training prices: tested on earlier ones, the model would know the answers."""
    examples: int
    revoked_share: float
    model: AnyModel


def encoded(saved: SavedModel) -> bytes:
    return msgspec.json.encode(saved)


def decoded(content: bytes, source: str = "this file") -> SavedModel:
    """The model that `encoded` wrote; anything else is a DataError."""
    try:
        return msgspec.json.decode(content, type=SavedModel)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"{source} is not a saved revocation model: {error}", hint="make one with shoestring market fit"
        ) from error
