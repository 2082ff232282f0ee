"""Machines as parameters of a space: how they are written, what is refused, and how the market of a run fills them."""

from __future__ import annotations

import msgspec
import pytest

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing, Offer
from shoestring.space.space import Choice, Constant, Int, Space, from_plain
from shoestring.specs.machines import resolve_machines
from shoestring.specs.request import RunRequest

TYPES = ("small", "large")


def listing(machine: str, zone: str, *, spot: bool, slots: int = 1, usd: float = 1.0) -> Listing:
    offer = Offer(provider="aws", zone=zone, machine=machine, spot=spot)
    return Listing(offer=offer, vcpus=2, memory_gb=8, slots=slots, on_demand_usd_per_hour=usd)


EVERYWHERE = tuple(
    listing(machine, zone, spot=spot) for machine in TYPES for zone in ("a", "b") for spot in (True, False)
)


def spec(space: dict, listings=EVERYWHERE, **more) -> RunSpec:
    words = {"budget_usd": 20.0, **more}
    return RunSpec(
        name="joint", space=from_plain({"x": ss.uniform(0, 1), **space}), metric="loss", listings=listings, **words
    )


def refused(call, *args, **words) -> tuple[str, str]:
    with pytest.raises(SpecError) as caught:
        call(*args, **words)
    return str(caught.value), caught.value.hint or ""


# -- as they are written --------------------------------------------------------------------------------------------
def test_python_and_files_give_the_same() -> None:
    python = {
        "machine": ss.machine_type("small", "large"),
        "machines": ss.machine_count(1, 4),
        "where": ss.zone("a", "b"),
        "spot": ss.on_spot(True, False),
    }
    file = {
        "machine": {"machine_type": ["small", "large"]},
        "machines": {"machine_count": [1, 4]},
        "where": {"zone": ["a", "b"]},
        "spot": {"on_spot": [True, False]},
    }
    assert from_plain(python) == from_plain(file)
    assert from_plain(file).roles == {"machine": "machine", "count": "machines", "zone": "where", "spot": "spot"}


def test_all_in_a_file_is_no_argument_in_python() -> None:
    file = {"m": {"machine_type": "all"}, "z": {"zone": "all"}, "s": {"on_spot": "all"}}
    assert from_plain(file) == from_plain({"m": ss.machine_type(), "z": ss.zone(), "s": ss.on_spot()})


def test_to_models_they_are_parameters_like_others() -> None:
    plain = from_plain({"m": ss.choice("small", "large"), "n": ss.integer(1, 4)})
    joint = from_plain({"m": ss.machine_type("small", "large"), "n": ss.machine_count(1, 4)})
    config = {"m": "large", "n": 3}
    assert joint.encode(config) == plain.encode(config)
    assert joint.size == plain.size
    joint.check(config)


def test_one_number_of_machines_is_a_constant() -> None:
    assert ss.machine_count(2) == ss.machine_count(2, 2) == Constant(2, role="count")
    assert from_plain({"n": {"machine_count": 2}}).params["n"] == Constant(2, role="count")
    assert ss.machine_count(1, 4) == Int(1, 4, role="count")


def test_a_space_with_machines_survives_the_journal() -> None:
    space = from_plain({"m": ss.machine_type("small"), "n": ss.machine_count(1, 3, when={"m": "small"})})
    assert msgspec.json.decode(msgspec.json.encode(space), type=Space) == space


def test_a_space_from_before_there_were_roles_is_read() -> None:
    old = b'{"params":{"x":{"type":"choice","when":{},"options":["a","b"]}}}'
    assert msgspec.json.decode(old, type=Space).params == {"x": Choice(("a", "b"))}


@pytest.mark.parametrize(
    ("space", "what"),
    [
        ({"m": ss.machine_type("a"), "k": ss.machine_type("b")}, "m and k are both a machine_type"),
        ({"n": {"machine_count": [0, 3]}}, "cannot run on 0 machines"),
        ({"n": {"machine_count": 0}}, "cannot run on 0 machines"),
        ({"n": {"machine_count": [1.5, 3]}}, "1.5 is not a whole number"),
        ({"n": {"machine_count": [3, 1]}}, "machine_count(3, 1) is empty"),
        ({"n": Choice((1, 2), role="count")}, "is not a number of machines"),
        ({"s": {"on_spot": [1, 0]}}, "is not true or false"),
        ({"s": {"on_spot": "yes"}}, "is not true or false"),
        ({"m": ss.machine_type(3)}, "machine_type(3) names no machine"),
        ({"z": {"zone": ["a", "a"]}}, "has the option 'a' twice"),
        ({"m": {"machin_type": "all"}}, "'machin_type' is not a kind of parameter"),
    ],
)
def test_invalid_machine_parameters_are_refused(space: dict, what: str) -> None:
    assert what in refused(from_plain, space)[0]


def test_without_a_market_machines_have_to_be_named() -> None:
    space = from_plain({"m": ss.machine_type()})
    assert "there is no market here" in refused(space.grid)[0]
    assert "there is no market here" in refused(space.params["m"].at, 0.5)[0]


# -- against a market -----------------------------------------------------------------------------------------------
def test_without_options_everything_in_the_market_is_used() -> None:
    filled = resolve_machines(
        spec({"m": ss.machine_type(), "z": ss.zone(), "s": ss.on_spot()}), trials_given=True
    ).space
    assert [filled.params[name].options for name in "mzs"] == [TYPES, ("a", "b"), (True, False)]


def test_a_zone_that_does_not_offer_every_type_is_not_filled_in() -> None:
    some = [x for x in EVERYWHERE if (x.offer.machine, x.offer.zone) != ("large", "b")]
    filled = resolve_machines(spec({"m": ss.machine_type(), "z": ss.zone()}, some), trials_given=True).space
    assert filled.params["z"].options == ("a",)
    filled = resolve_machines(spec({"m": ss.machine_type("small"), "z": ss.zone()}, some), trials_given=True).space
    assert filled.params["z"].options == ("a", "b")


def test_a_finite_space_has_as_many_trials_as_it_can_name() -> None:
    space = {"x": ss.choice(1, 2), "m": ss.machine_type(), "s": ss.on_spot()}
    assert resolve_machines(spec(space), trials_given=False).trials == 2 * 2 * 2
    assert resolve_machines(spec(space, trials=3), trials_given=True).trials == 3


@pytest.mark.parametrize(
    ("space", "what", "hint"),
    [
        ({"m": ss.machine_type("smal")}, "space.m: nothing is for sale as smal in this run", "did you mean small?"),
        ({"z": ss.zone("a", "c")}, "space.z: nothing is for sale in c in this run", "known: a, b"),
    ],
)
def test_unknown_machine_names_are_refused(space: dict, what: str, hint: str) -> None:
    told, hint_given = refused(resolve_machines, spec(space), trials_given=True)
    assert what in told
    assert hint in hint_given


def test_a_kind_that_is_not_offered_is_refused() -> None:
    kept = [x for x in EVERYWHERE if not x.offer.spot]
    told, hint = refused(resolve_machines, spec({"s": ss.on_spot(True, False)}, kept), trials_given=True)
    assert "nothing is for sale on spot" in told
    assert hint == "only on demand"


def test_a_combination_that_is_not_offered_is_refused_by_name() -> None:
    some = [x for x in EVERYWHERE if (x.offer.machine, x.offer.zone) != ("large", "b")]
    told, hint = refused(
        resolve_machines, spec({"m": ss.machine_type(*TYPES), "z": ss.zone("a", "b")}, some), trials_given=True
    )
    assert "nothing is for sale as large in b" in told
    assert "leave type, zone or spot open" in hint
    resolve_machines(spec({"m": ss.machine_type(*TYPES)}, some), trials_given=True)  # the zone is open: one sells it


def test_a_machine_too_small_for_a_worker_is_refused() -> None:
    told, _ = refused(resolve_machines, spec({"m": ss.machine_type("small")}, slots=2), trials_given=True)
    assert "nothing is for sale as small with the 2 slots that a worker takes" in told


def test_more_machines_than_may_be_held_are_refused() -> None:
    told, hint = refused(resolve_machines, spec({"n": ss.machine_count(1, 8)}), trials_given=True)
    assert "a trial may have 8 machines, and max_machines=4" in told
    assert "raise max_machines to 8" in hint


def test_machines_that_the_whole_budget_cannot_start_are_refused() -> None:
    dear = (*EVERYWHERE, listing("huge", "a", spot=False, usd=100.0))
    told, _ = refused(
        resolve_machines,
        spec({"m": ss.machine_type("small", "huge"), "n": ss.machine_count(1, 2)}, dear, budget_usd=2.0),
        trials_given=True,
    )
    assert "cannot pay the first minute of 2 x huge on-demand in a" in told


def test_given_configurations_are_checked_once_the_options_are_known() -> None:
    given = ({"x": 0.5, "m": "tiny"},)
    assert (
        "m='tiny' is not in the space"
        in refused(resolve_machines, spec({"m": ss.machine_type()}, given=given), trials_given=True)[0]
    )


# -- in a call --------------------------------------------------------------------------------------------------------
def gathered(**fields) -> RunRequest:
    words = {"minimize": "loss", "budget": 20, "trials": 4, "recipe": "random", **fields}
    return RunRequest.resolve(None, words, kind="study", source="tune()", runs_code=False)


def test_named_machines_select_a_market_that_offers_them() -> None:
    asked = gathered(space={"x": ss.uniform(0, 1), "m": ss.machine_type("c5.xlarge", "m5.large")})
    assert {x.offer.machine for x in asked.spec.listings} == {"c5.xlarge", "m5.large"}
    asked = gathered(space={"m": ss.machine_type("m5.large")}, machines=["m5.large", "c5.large"])
    assert {x.offer.machine for x in asked.spec.listings} == {"c5.large", "m5.large"}


def test_errors_name_the_call() -> None:
    space = {"m": ss.machine_type("m5.large"), "n": ss.machine_count(1, 9)}
    assert refused(gathered, space=space)[0].startswith("tune(): space.n: a trial may have 9 machines")


def test_a_grid_counts_the_machines_that_were_filled_in() -> None:
    asked = gathered(
        space={"x": ss.choice(1, 2, 3), "m": ss.machine_type(), "s": ss.on_spot()},
        machines=["m5.large", "c5.large"],
        recipe="grid",
    )
    assert asked.spec.trials == 3 * 2 * 2


@pytest.mark.parametrize("recipe", ["seer", "hypersched", "flex", "rubberband", "elastic_grid"])
def test_recipes_with_widths_of_their_own_refuse_machines_in_the_space(recipe: str) -> None:
    space = {"x": ss.uniform(0, 1), "m": ss.machine_type("m5.large")}
    told, hint = refused(gathered, space=space, recipe=recipe, max_steps=9, deadline="6h")
    assert f"recipe='{recipe}' chooses machines and slots itself, but m in the space" in told
    assert "recipe='tpe'" in hint


@pytest.mark.parametrize(
    ("options", "space", "what"),
    [
        ({"placement": "on_demand"}, {"s": ss.on_spot()}, "rents no spot machines, and space.s names some"),
        ({"placement": "as_printed"}, {"n": ss.machine_count(1, 2)}, "gives each trial a machine of its own"),
        ({"placement": "cheapest", "rotate": "1h"}, {"n": ss.machine_count(1, 2)}, "share machines or use several"),
    ],
)
def test_contradicting_placements_are_refused(options: dict, space: dict, what: str) -> None:
    assert what in refused(gathered, space={"x": ss.uniform(0, 1), **space}, options=options)[0]
