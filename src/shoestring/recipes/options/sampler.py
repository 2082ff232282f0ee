"""The option `sampler`: where a recipe's new configurations come from.

random (the default), tpe (our own, as in the recipe of that name), optuna:NAME (one of Optuna's samplers).
"""

from __future__ import annotations

from shoestring.errors import SpecError
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, Sampler
from shoestring.recipes.options.parse import Options
from shoestring.values import did_you_mean

OPTUNA = "optuna"


def chosen_sampler(options: Options) -> Sampler:
    named = options.text("sampler", "random")
    library, colon, name = named.partition(":")
    if colon and library == OPTUNA:
        from shoestring.policies.search.samplers.optuna import OptunaSampler

        return OptunaSampler.named(name)
    if named == "tpe":
        from shoestring.policies.search.samplers.model_based import TpeSampler

        return TpeSampler()
    if named != "random":
        known = ("random", "tpe", f"{OPTUNA}:tpe")
        raise SpecError(f"options.sampler={named!r} is unknown", hint=did_you_mean(named, known))
    return RANDOM_SAMPLER
