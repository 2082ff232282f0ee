"""Estimated time left and total cost of a bag, compared with the actual ones."""

from __future__ import annotations

import pytest

import shoestring as ss
from shoestring.kernel.state import RunState
from shoestring.kernel.step import replay
from shoestring.runs.eta import eta_of
from shoestring.runs.progress_line import line_of


def bag_of(jobs: int, **changes: object) -> ss.Bag:
    fields: dict[str, object] = {
        "over": {"seed": range(jobs)},
        "market": {"kind": "modern", "interruptions_per_hour": 0.2},
        "budget": "$9",
        "deadline": "4d",
        "workload": ss.Workload(curve=lambda _: lambda _: {}, seconds_per_step=ss.SublinearSpeed(1800.0)),
    }
    return ss.simulate(**(fields | changes))


def state_when_done(bag: ss.Bag, finished: int) -> RunState:
    """The state right after so many jobs were done and the next had started."""
    state = RunState()
    for entry in bag.entries():
        replay(state, entry)
        if state.by_status["finished"] >= finished and state.segments:
            return state
    raise AssertionError(f"never {finished} jobs done")


@pytest.fixture(scope="module")
def bag() -> ss.Bag:
    return bag_of(100)


@pytest.fixture(scope="module")
def calm_bag() -> ss.Bag:
    """Without preemptions: estimates can be compared with the outcome."""
    return bag_of(100, market={"kind": "modern", "interruptions_per_hour": 0.0})


@pytest.mark.parametrize(("finished", "within"), [(1, 0.35), (4, 0.15), (20, 0.15), (50, 0.15), (90, 0.15)])
def test_the_estimated_time_is_close_to_the_actual_time(calm_bag: ss.Bag, finished: int, within: float) -> None:
    """One job does not tell how much jobs differ, so the others count as a little longer."""
    state = state_when_done(calm_bag, finished)
    eta = eta_of(state)
    assert eta is not None
    assert eta.left_s == pytest.approx(calm_bag.state.now - state.now, rel=within)


def test_the_estimated_cost_is_close_to_the_actual_cost(bag: ss.Bag) -> None:
    assert bag.state.revocations > 0
    assert eta_of(state_when_done(bag, 50)).total_usd == pytest.approx(bag.spent, rel=0.1)


def test_without_bills_and_prices_there_is_no_cost_estimate(calm_bag: ss.Bag) -> None:
    state = state_when_done(calm_bag, 20)
    assert eta_of(state).total_usd is None
    assert " of $9.00 · " in line_of(state)


def test_there_is_no_estimate_before_a_job_is_done_or_after_the_end(bag: ss.Bag) -> None:
    assert eta_of(state_when_done(bag, 0)) is None
    assert eta_of(bag.state) is None


def test_the_live_line_of_a_bag_shows_the_estimate(bag: ss.Bag) -> None:
    line = line_of(state_when_done(bag, 90))
    assert line.startswith("9")
    assert "/100 · about " in line
    assert " left · $" in line
    assert " of $9.00, about $" in line
    assert " in total · " in line
    assert "best" not in line
    assert "about" not in line_of(bag.state)


def test_a_bag_free_of_charge_has_a_time_and_no_cost_estimate() -> None:
    bag = bag_of(20, market="free", budget=None)
    line = line_of(state_when_done(bag, 5))
    assert " left · free of charge · " in line


def test_the_estimate_does_not_depend_on_earlier_calls(bag: ss.Bag) -> None:
    state = state_when_done(bag, 50)
    estimated_before = RunState()
    for entry in bag.entries():
        replay(estimated_before, entry)
        eta_of(estimated_before)
        if estimated_before.seq == state.seq:
            break
    assert eta_of(estimated_before) == pytest.approx(eta_of(state))
