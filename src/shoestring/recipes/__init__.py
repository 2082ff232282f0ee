"""Recipes: named bundles of policies. `build(spec)` makes the one a spec asks for, in the order they are asked in.

A recipe is a function from a RunSpec to policies, and its first line of documentation is what `describe` shows. Other
packages add theirs under the entry point group "shoestring.recipes"; those are looked at only when a name is not ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.limits.judge import Judging
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
_OURS: dict[str, Recipe] = {
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
_OF_PARTS = frozenset({"trimtuner", "trimtuner_gp_as_printed", "trimtuner_dt_as_printed"})
"""Those that run trials on parts of the data and learn from what they took. Recipes of others may do the first too:
only they themselves can know."""


def build(spec: RunSpec) -> list[Policy]:
    """The policies of the spec's recipe. A recipe or an option that is not known is a SpecError with the way out.

    Where there are limits, or where the search learns from what trials took, they are judged before it is asked.
    """
    policies = _recipe(spec)
    return [Judging(), *policies] if spec.constraints or spec.fractions or spec.recipe in _OF_PARTS else policies


def search_of(spec: RunSpec) -> Policy:
    """The first policy of the spec's recipe: the one that searches."""
    return _recipe(spec)[0]


def _recipe(spec: RunSpec) -> list[Policy]:
    recipe = _OURS.get(spec.recipe)
    if recipe is None:
        others = dict(_others())
        if spec.recipe not in others:
            raise SpecError(f"recipe={spec.recipe!r} is unknown", hint=did_you_mean(spec.recipe, [*_OURS, *others]))
        recipe = others[spec.recipe]()
    elif spec.fractions and spec.recipe not in _OF_PARTS:
        raise SpecError(
            f"fractions={list(spec.fractions)}: recipe {spec.recipe} trains every trial on all of the data",
            hint="use recipe='trimtuner', or leave fractions out",
        )
    return list(recipe(spec))


def describe() -> list[tuple[str, str]]:
    """Every recipe that can be asked for, with one line about it."""
    ours = [(name, _first_line(recipe)) for name, recipe in _OURS.items()]
    return ours + [(name, _first_line(load())) for name, load in _others() if name not in _OURS]


def _first_line(recipe: Recipe) -> str:
    return (recipe.__doc__ or "").strip().partition("\n")[0]


def _others() -> Iterator[tuple[str, Callable[[], Recipe]]]:
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.name, entry.load
