"""Recipes by name: their policies, and the errors for wrong names and options."""

from __future__ import annotations

from importlib import metadata

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.errors import SpecError
from shoestring.kernel.spec import Code
from shoestring.policies.checkpointing.on_notice import OnNotice
from shoestring.policies.checkpointing.periodic import Periodic
from shoestring.policies.checkpointing.retention import Retention
from shoestring.policies.housekeeping.closing import Closing
from shoestring.policies.housekeeping.renewal import Renewal
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.placement.slack.policy import Slack
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.hyperband import Hyperband
from shoestring.policies.search.halving.successive import SuccessiveHalving
from shoestring.policies.search.run_to_completion import Given, Grid, RandomSearch, Sampled
from shoestring.policies.search.samplers.model_based import TpeSampler
from shoestring.space.space import from_plain
from shoestring.testing.story import SPEC

SEARCHES = {
    "asha": Asha(),
    "hyperband": Hyperband(),
    "successive_halving": SuccessiveHalving(),
    "asha_tpe": Asha(sampler=TpeSampler()),
    "bohb": Hyperband(sampler=TpeSampler(random_share=1 / 3)),
    "tpe": Sampled(TpeSampler()),
    "random": RandomSearch(),
    "grid": Grid(),
    "given": Given(),
}


def build(recipe: str, **options):
    return recipes.build(replace(SPEC, recipe=recipe, options=options, given=({"x": 0.5},)))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_recipe_is_a_search_with_everything_around_it_in_order(name: str) -> None:
    around = [Slack(), Periodic(every_s=900.0), Renewal(), Closing(), Retention()]
    assert build(name) == [SEARCHES[name], *around]


def test_options_choose_placement_and_checkpointing() -> None:
    assert build("random", placement="on_demand", checkpointing="on_notice")[1:3] == [OnDemand(), OnNotice()]
    assert build("random", every_s="5m")[2] == Periodic(every_s=300.0)
    assert build("random", every_s=30)[2] == Periodic(every_s=30.0)


def test_options_reach_the_search() -> None:
    assert build("asha", eta=4, grace_steps=2)[0] == Asha(eta=4, grace_steps=2)
    assert build("hyperband", eta=2)[0] == Hyperband(eta=2)
    assert build("successive_halving", grace_steps=9)[0] == SuccessiveHalving(grace_steps=9)
    assert build("grid", points=2)[0] == Grid(points=2)
    model = TpeSampler(startup=4, gamma=0.5, candidates=9, random_share=0.2)
    words = {"startup": 4, "gamma": 0.5, "candidates": 9, "random_share": 0.2}
    assert build("tpe", **words)[0] == Sampled(model)
    assert build("asha_tpe", eta=2, **words)[0] == Asha(eta=2, sampler=model)
    assert build("bohb", grace_steps=3, **words)[0] == Hyperband(grace_steps=3, sampler=model)


@pytest.mark.parametrize(
    ("recipe", "options", "says", "hint"),
    [
        ("ahsa", {}, "recipe='ahsa' is unknown", "asha"),
        ("magic", {}, "recipe='magic' is unknown", "known: asha, hyperband"),
        ("asha", {"etta": 3}, "options.etta=3: the recipe asha has no such option", "eta"),
        ("random", {"eta": 3}, "the recipe random has no such option", "known: sampler, placement"),
        ("asha", {"eta": 1}, "options.eta=1 is too small", "at least 2"),
        ("asha", {"eta": 2.5}, "options.eta: 2.5 is not a whole number", "fraction"),
        ("asha", {"eta": "many"}, "options.eta: 'many' is not a number", "0.001"),
        ("asha", {"grace_steps": 10}, "options.grace_steps=10 is more than max_steps=9", "lower it"),
        ("tpe", {"gamma": 0}, "options.gamma=0 is out of range", "from 0.01 to 0.99"),
        ("tpe", {"gamma": float("nan")}, "options.gamma=nan is out of range", "from 0.01 to 0.99"),
        ("tpe", {"startup": 0}, "options.startup=0 is too small", "at least 1"),
        ("tpe", {"candidates": "few"}, "options.candidates: 'few' is not a number", ""),
        ("tpe", {"eta": 3}, "the recipe tpe has no such option", "known: startup"),
        ("bohb", {"random_share": 1.5}, "options.random_share=1.5 is out of range", "from 0 to 1"),
        ("grid", {"points": 0}, "options.points=0 is too small", "at least 1"),
        ("asha", {"placement": "cheap"}, "options.placement='cheap' is unknown", "cheapest"),
        ("asha", {"checkpointing": "never"}, "options.checkpointing='never' is unknown", "on_notice"),
        ("asha", {"every_s": 0}, "options.every_s=0 is not a positive time", "15m"),
        ("asha", {"every_s": "soon"}, "options.every_s='soon' is not a length of time", ""),
        ("asha", {"checkpointing": "on_notice", "every_s": 60}, "has no such option", ""),
    ],
)
def test_wrong_input_is_an_error_with_a_hint(recipe: str, options: dict, says: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        build(recipe, **options)
    assert says in str(caught.value)
    assert hint in caught.value.hint


def test_an_empty_bag_is_refused() -> None:
    with pytest.raises(SpecError, match="which is empty"):
        recipes.build(replace(SPEC, recipe="given"))


def test_trials_cannot_be_ranked_without_a_metric() -> None:
    bag = replace(SPEC, kind="bag", metric=None, given=({"x": 0.5},))
    assert recipes.build(replace(bag, recipe="given"))
    for recipe in ("asha", "tpe", "asha_tpe", "bohb"):
        with pytest.raises(SpecError, match="no metric"):
            recipes.build(replace(bag, recipe=recipe))


def test_every_recipe_has_a_one_line_description() -> None:
    described = {recipe.name: recipe.summary for recipe in recipes.describe()}
    assert set(SEARCHES) <= set(described)
    assert all(line and len(line) < 120 for line in described.values())


def test_installed_packages_are_not_searched_for_a_recipe_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched(**_kwargs):
        raise AssertionError("looked at the installed packages")

    monkeypatch.setattr(metadata, "entry_points", searched)
    assert build("asha")


@pytest.mark.parametrize("recipe", ["hypersched", "elastic_successive_halving", "seer", "flex"])
def test_programs_that_are_launched_once_need_machines_rented_together(recipe):
    once = replace(SPEC, recipe=recipe, code=Code(command=("mpirun", "./x"), launch="once"))
    with pytest.raises(SpecError, match="launch='once' needs machines that are rented together") as caught:
        recipes.build(once)
    assert "scispot" in caught.value.hint


def test_programs_that_are_launched_once_cannot_have_their_machines_counted_by_the_space():
    space = from_plain({"x": [0.1, 0.2], "nodes": {"machine_count": [1, 2]}})
    once = replace(SPEC, recipe="random", space=space, code=Code(command=("mpirun", "./x"), launch="once"))
    with pytest.raises(SpecError, match=r"space\.nodes counts are taken one by one"):
        recipes.build(once)
