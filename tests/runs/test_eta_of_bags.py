"""How long a bag still takes and what it will have cost: told while it runs, judged by what came of it."""

from __future__ import annotations

import pytest

import shoestring as ss
from shoestring.kernel.state import RunState
from shoestring.kernel.step import replay
from shoestring.runs.eta import outlook
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
    """As it was right after so many jobs were done and the next had begun."""
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
    """Machines stay: what is told can be held against what came."""
    return bag_of(100, market={"kind": "modern", "interruptions_per_hour": 0.0})


@pytest.mark.parametrize("finished", [1, 4, 20, 50, 90])
def test_the_time_told_is_about_the_time_it_takes(calm_bag: ss.Bag, finished: int) -> None:
    state = state_when_done(calm_bag, finished)
    ahead = outlook(state)
    assert ahead is not None
    assert ahead.left_s == pytest.approx(calm_bag.state.now - state.now, rel=0.15)


def test_the_money_told_is_about_the_money_it_takes(bag: ss.Bag) -> None:
    assert bag.state.revocations > 0
    assert outlook(state_when_done(bag, 50)).total_usd == pytest.approx(bag.spent, rel=0.1)


def test_with_no_bill_and_no_prices_at_hand_nobody_guesses_money(calm_bag: ss.Bag) -> None:
    state = state_when_done(calm_bag, 20)
    assert outlook(state).total_usd is None
    assert " of $9.00 · " in line_of(state)


def test_nothing_is_told_before_a_job_is_done_or_after_the_end(bag: ss.Bag) -> None:
    assert outlook(state_when_done(bag, 0)) is None
    assert outlook(bag.state) is None


def test_the_line_of_a_bag_says_it_in_words(bag: ss.Bag) -> None:
    line = line_of(state_when_done(bag, 90))
    assert line.startswith("9")
    assert "/100 · about " in line
    assert " left · $" in line
    assert " of $9.00, about $" in line
    assert " in all · " in line
    assert "best" not in line
    assert "about" not in line_of(bag.state)


def test_a_bag_for_nothing_has_time_and_no_money() -> None:
    bag = bag_of(20, market="free", budget=None)
    line = line_of(state_when_done(bag, 5))
    assert " left · for nothing · " in line


def test_the_estimate_is_the_same_however_often_it_was_asked_for(bag: ss.Bag) -> None:
    state = state_when_done(bag, 50)
    asked_before = RunState()
    for entry in bag.entries():
        replay(asked_before, entry)
        outlook(asked_before)
        if asked_before.seq == state.seq:
            break
    assert outlook(asked_before) == pytest.approx(outlook(state))
