"""Recipes: named bundles of policies. `build(spec)` makes those of a spec's recipe, in the order in which they decide.

A recipe is a function from a RunSpec to policies, and the first line of its docstring is what `describe` shows. Its
module is imported when it is first used. Other packages add theirs under the entry point group "shoestring.recipes",
which is read only when a name is not built in. `NAME_as_printed` is a reference implementation of a paper: it can be
chosen, but is listed apart and not in hints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import filterfalse
from typing import NamedTuple

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.recipes.lazy_table import LazyTable
from shoestring.values import did_you_mean, is_reference

__all__ = ["GROUP", "Recipe", "build", "describe", "refuse_early_stopping", "search_of"]

Recipe = Callable[[RunSpec], Sequence[Policy]]

GROUP = "shoestring.recipes"
_HOMES = {
    "asha": "classic",
    "hyperband": "classic",
    "successive_halving": "classic",
    "asha_tpe": "model_based",
    "bohb": "model_based",
    "tpe": "model_based",
    "flex": "flex",
    "trimtuner": "trimtuner",
    "seer": "elastic",
    "hypersched": "elastic",
    "elastic_hyperband": "elastic",
    "elastic_successive_halving": "elastic",
    "elastic_grid": "elastic",
    "rubberband": "rubberband",
    "scispot": "scispot",
    "spottune": "spottune",
    "theta": "theta",
    "theta_adaptive": "theta",
    "random": "classic",
    "grid": "classic",
    "given": "classic",
    "trimtuner_gp_as_printed": "trimtuner",
    "trimtuner_dt_as_printed": "trimtuner",
    "seer_as_printed": "elastic",
    "spottune_as_printed": "spottune",
}
"""The module of each recipe; its function has its name."""
_BUILT_IN: LazyTable[Recipe] = LazyTable({name: f"{__name__}.{module}:{name}" for name, module in _HOMES.items()})
_WITH_FRACTIONS = frozenset({"trimtuner", "trimtuner_gp_as_printed", "trimtuner_dt_as_printed"})
"""Recipes that run trials on data fractions and learn from the cost of trials. Recipes of other packages may use
fractions too: only they can know."""
_STOP_EARLY = frozenset(_HOMES) - {"given", "scispot", "random", "grid", "tpe", *_WITH_FRACTIONS}


def build(spec: RunSpec) -> list[Policy]:
    """The policies of the spec's recipe. An unknown recipe or option is a SpecError with a hint.

    With constraints, or where the search learns from the cost of trials, trials are judged before the search decides.
    """
    policies = _recipe(spec)
    if not (spec.constraints or spec.fractions or spec.recipe in _WITH_FRACTIONS):
        return policies
    from shoestring.policies.search.constraints.judge import JudgeTrials

    return [JudgeTrials(), *policies]


def search_of(spec: RunSpec) -> Policy:
    """The first policy of the spec's recipe: the search."""
    return _recipe(spec)[0]


def _recipe(spec: RunSpec) -> list[Policy]:
    name = spec.recipe
    if name not in _BUILT_IN:
        others = dict(_of_other_packages())
        if name not in others:
            known = filterfalse(is_reference, [*_BUILT_IN, *others])
            raise SpecError(f"recipe={name!r} is unknown", hint=did_you_mean(name, known))
        return list(others[name]()(spec))
    if spec.fractions and name not in _WITH_FRACTIONS:
        raise SpecError(
            f"fractions={list(spec.fractions)}: recipe {name} trains every trial on all of the data",
            hint="use recipe='trimtuner', or leave fractions out",
        )
    return list(_BUILT_IN[name](spec))


def refuse_early_stopping(spec: RunSpec) -> None:
    """A new bag runs every job to its end. Not asked of a recorded one, which is resumed with the recipe it has."""
    if spec.until_exit and spec.recipe in _STOP_EARLY:
        raise SpecError(
            f"recipe={spec.recipe!r} stops trials early and resumes the best, and a bag runs every job to its end",
            hint="use recipe='given' or 'scispot', or make it a study: a space, with the configurations in `given`",
        )


class Description(NamedTuple):
    name: str
    summary: str
    reference: bool
    """Is it a reference implementation: a paper's method exactly as printed, for comparison?"""


def describe() -> list[Description]:
    """Every available recipe, with one line about it. Imports them all: the line is the recipe's docstring."""
    ours = [_described(name, recipe) for name, recipe in _BUILT_IN.items()]
    return ours + [_described(name, load()) for name, load in _of_other_packages() if name not in _BUILT_IN]


def _described(name: str, recipe: Recipe) -> Description:
    return Description(name, (recipe.__doc__ or "").strip().partition("\n")[0], is_reference(name))


def _of_other_packages() -> Iterator[tuple[str, Callable[[], Recipe]]]:
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.name, entry.load
