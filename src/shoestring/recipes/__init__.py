"""Recipes: named bundles of policies. `build(spec)` makes those of a spec's recipe, in the order in which they decide.

A recipe is a function from a RunSpec to policies, and the first line of its docstring is what `describe` shows. Other
packages add theirs under the entry point group "shoestring.recipes"; those are loaded only when a name is not built in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.constraints.judge import JudgeTrials
from shoestring.recipes.classic import asha, given, grid, hyperband, random, successive_halving
from shoestring.recipes.elastic import (
    elastic_grid,
    elastic_hyperband,
    elastic_successive_halving,
    hypersched,
    seer,
    seer_as_printed,
)
from shoestring.recipes.flex import flex
from shoestring.recipes.model_based import asha_tpe, bohb, tpe
from shoestring.recipes.rubberband import rubberband
from shoestring.recipes.scispot import scispot
from shoestring.recipes.spottune import spottune, spottune_as_printed
from shoestring.recipes.theta import theta, theta_adaptive
from shoestring.recipes.trimtuner import trimtuner, trimtuner_dt_as_printed, trimtuner_gp_as_printed
from shoestring.values import did_you_mean

__all__ = ["GROUP", "Recipe", "build", "describe", "search_of"]

Recipe = Callable[[RunSpec], Sequence[Policy]]

GROUP = "shoestring.recipes"
_BUILT_IN: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        asha,
        hyperband,
        successive_halving,
        asha_tpe,
        bohb,
        tpe,
        flex,
        trimtuner,
        trimtuner_gp_as_printed,
        trimtuner_dt_as_printed,
        seer,
        seer_as_printed,
        hypersched,
        elastic_hyperband,
        elastic_successive_halving,
        elastic_grid,
        rubberband,
        scispot,
        spottune,
        spottune_as_printed,
        theta,
        theta_adaptive,
        random,
        grid,
        given,
    )
}
_WITH_FRACTIONS = frozenset({"trimtuner", "trimtuner_gp_as_printed", "trimtuner_dt_as_printed"})
"""Recipes that run trials on data fractions and learn from the cost of trials. Recipes of other packages may use
fractions too: only they can know."""


def build(spec: RunSpec) -> list[Policy]:
    """The policies of the spec's recipe. An unknown recipe or option is a SpecError with a hint.

    With constraints, or where the search learns from the cost of trials, trials are judged before the search decides.
    """
    policies = _recipe(spec)
    return (
        [JudgeTrials(), *policies] if spec.constraints or spec.fractions or spec.recipe in _WITH_FRACTIONS else policies
    )


def search_of(spec: RunSpec) -> Policy:
    """The first policy of the spec's recipe: the search."""
    return _recipe(spec)[0]


def _recipe(spec: RunSpec) -> list[Policy]:
    recipe = _BUILT_IN.get(spec.recipe)
    if recipe is None:
        others = dict(_of_other_packages())
        if spec.recipe not in others:
            raise SpecError(f"recipe={spec.recipe!r} is unknown", hint=did_you_mean(spec.recipe, [*_BUILT_IN, *others]))
        recipe = others[spec.recipe]()
    elif spec.fractions and spec.recipe not in _WITH_FRACTIONS:
        raise SpecError(
            f"fractions={list(spec.fractions)}: recipe {spec.recipe} trains every trial on all of the data",
            hint="use recipe='trimtuner', or leave fractions out",
        )
    return list(recipe(spec))


def describe() -> list[tuple[str, str]]:
    """Every available recipe, with one line about it."""
    ours = [(name, _first_line(recipe)) for name, recipe in _BUILT_IN.items()]
    return ours + [(name, _first_line(load())) for name, load in _of_other_packages() if name not in _BUILT_IN]


def _first_line(recipe: Recipe) -> str:
    return (recipe.__doc__ or "").strip().partition("\n")[0]


def _of_other_packages() -> Iterator[tuple[str, Callable[[], Recipe]]]:
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.name, entry.load
