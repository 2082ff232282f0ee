"""Simulated trials: their speed by machine, and their reports, from a function or a table."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.errors import SpecError
from shoestring.kernel import events as e
from shoestring.world.sim.workload import CurveTable, SublinearSpeed
from tests.world.scenes import SPOT, Scene, listing, market


# -- speed -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("facts", "slots", "seconds"),
    [
        ({"vcpus": 4}, 1, 10.0),
        ({"vcpus": 8}, 1, 10.0 / 2**0.7),
        ({"vcpus": 2}, 1, 10.0 * 2**0.7),
        ({"vcpus": 8, "slots": 2}, 1, 10.0),  # four cores a slot, as the base has
        ({"vcpus": 8, "slots": 2}, 2, 10.0 / 2**0.8),
    ],
)
def test_steps_get_faster_with_cores_and_slots_but_less_than_in_proportion(facts, slots, seconds):
    assert SublinearSpeed(10.0)({}, listing(SPOT, **facts), slots) == pytest.approx(seconds)


def test_the_exponents_and_the_base_machine_are_parameters():
    machine = listing(SPOT, vcpus=16, slots=4)
    assert SublinearSpeed(10.0, base_vcpus=2.0)({}, machine, 1) == pytest.approx(10 / 2**0.7)
    assert SublinearSpeed(10.0, core_exponent=1.0, base_vcpus=1.0)({}, machine, 1) == pytest.approx(2.5)
    assert SublinearSpeed(10.0, slot_exponent=0.5)({}, machine, 4) == pytest.approx(5.0)


@given(st.lists(st.integers(1, 64), min_size=2, max_size=5, unique=True).map(sorted))
def test_more_slots_always_help_and_always_cost_more_slot_seconds(widths):
    speed, machine = SublinearSpeed(10.0), listing(SPOT, vcpus=64, slots=64)
    for narrow, wide in pairwise(widths):
        assert speed({}, machine, wide) < speed({}, machine, narrow)
        assert wide * speed({}, machine, wide) > narrow * speed({}, machine, narrow)


def test_a_simulated_segment_steps_at_the_speed_of_its_machine_and_slots():
    scene = Scene(market(listings=[listing(SPOT, vcpus=8, slots=2)]), seconds_per_step=SublinearSpeed(10.0))
    scene.rent()
    scene.next()
    scene.start("s0", slots=2, until_step=1)
    scene.start("s1", slots=1, until_step=1)
    paces = {x.segment: x.at - 60.0 for x in scene.until(e.SegmentEnded) if isinstance(x, e.JobReported)}
    assert paces == {"s0": pytest.approx(10.0 / 2**0.8), "s1": pytest.approx(10.0)}


# -- curves ------------------------------------------------------------------------------------------------------------
def table(**fields) -> CurveTable:
    standard = {
        "metric": "loss",
        "points": [(0.0, 0.0), (1.0, 1.0)],
        "curves": [[(1, 0.9), (2, 0.8), (5, 0.5)], [(3, 0.3)]],
        "encode": lambda config: (config["x"], config["y"]),
    }
    return CurveTable(**{**standard, **fields})


def losses(curve, steps) -> list[float]:
    return [curve(step)["loss"] for step in steps]


def test_a_trial_replays_the_recorded_curve_nearest_to_it():
    recorded = table()
    assert losses(recorded({"x": 0.1, "y": 0.7}), [1, 2, 5]) == [0.9, 0.8, 0.5]
    assert losses(recorded({"x": 0.9, "y": 0.2}), [3]) == [0.3]


def test_between_two_recorded_steps_the_earlier_value_holds():
    assert losses(table()({"x": 0.0, "y": 0.0}), [3, 4]) == [0.8, 0.8]


def test_outside_the_recorded_steps_the_nearest_value_holds():
    assert losses(table()({"x": 1.0, "y": 1.0}), [1, 2, 4, 1000]) == [0.3, 0.3, 0.3, 0.3]


def test_a_simulated_trial_reports_the_values_of_its_table():
    scene = Scene(curve=table(encode=lambda _config: (0.0, 0.0)))
    scene.train(until_step=6)
    values = [x.metrics["loss"] for x in scene.until(e.SegmentEnded) if isinstance(x, e.JobReported)]
    assert values == [0.9, 0.8, 0.8, 0.8, 0.5, 0.5]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": [], "curves": []}, "0 configurations and 0 curves"),
        ({"points": [(0.0, 0.0)]}, "1 configurations and 2 curves"),
        ({"curves": [[(1, 0.9)], []]}, "cannot be simulated"),
        ({"points": [(0.0, 0.0), (1.0,)]}, "different numbers of parameters"),
        ({"curves": [[(1, 0.9)], [(2, 0.3), (1, 0.4)]]}, "curve 1 do not ascend"),
    ],
)
def test_an_invalid_table_of_curves_is_refused_with_a_hint(wrong, message):
    with pytest.raises(SpecError, match=message) as refusal:
        table(**wrong)
    assert refusal.value.hint
