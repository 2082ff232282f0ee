"""The live line, `status` and `why` always say why nothing runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import shoestring as ss
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.state import RunState
from shoestring.kernel.step import replay
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.report.explain import why
from shoestring.report.waiting import why_it_waits, why_nothing_runs
from shoestring.runs.progress_line import line_of
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story, story


def waiting() -> Story:
    run = story(Cheapest())
    run.add("j0", until_step=9)
    return run


def says(run: Story) -> str:
    sentence = why_nothing_runs(run.state)
    assert line_of(run.state).endswith(f" · {sentence}")
    return sentence


def test_a_running_trial_needs_no_explanation() -> None:
    assert why_nothing_runs(story(lease="l0", job="j0", running_since=0.0).state) == ""


def test_trials_that_start() -> None:
    run = story(lease="l0", job="j0")
    run.order(d.StartSegment(segment="s0", job="j0", leases=("l0",), config={}, until_step=9, why="the story"))
    assert says(run) == "1 trial starting"


def test_machines_that_are_requested() -> None:
    run = waiting()
    run.tell(e.TimerFired(at=90.0, name="tick"))
    assert says(run) == "waiting for 1 machine (small spot in a, requested at 1m30)"


def test_machines_that_are_denied_with_the_time_of_the_next_request() -> None:
    run = waiting()
    run.tell(e.TimerFired(at=0.0, name="tick"))
    run.tell(e.LeaseDenied(at=5.0, lease="l0", reason="no_capacity"))
    run.tell(e.LeaseDenied(at=10.0, lease="l1", reason="no_capacity"))
    assert says(run) == "waiting for a machine: 2 offers: no capacity; next request at 1m05"


def test_machines_that_are_preempted_before_a_trial_runs() -> None:
    run = waiting()
    del run.state.listings[ON_DEMAND_OFFER]
    at = 0.0
    for lease in ("l0", "l1", "l2"):
        run.tell(e.TimerFired(at=at, name=RETRY))
        run.tell(e.LeaseGranted(at=at + 40.0, lease=lease))
        run.tell(e.LeaseEnded(at=at + 50.0, lease=lease, cause="revoked", charged_usd=0.0))
        at += 1000.0
    assert says(run) == (
        "waiting for a machine: small spot in a: preempted before a trial could run, 3 times in a row; "
        "next request at 38m10"
    )


def test_a_price_that_is_too_high() -> None:
    run = waiting()
    del run.state.listings[ON_DEMAND_OFFER]
    run.feed = run.state.feed = type(run.feed)({SPOT: 2.0})  # type: ignore[call-arg]
    run.tell(e.TimerFired(at=0.0, name="tick"))
    assert says(run) == "waiting for a machine: no offer that fits has a price worth paying; next request at 1m"


def test_what_the_guard_refused() -> None:
    run = story()
    run.add("j0", until_step=9)
    run.happened(e.TimerFired(at=6 * 3600.0 - 30.0, name="tick"))
    run.order(d.RequestLease(lease="l0", offer=SPOT, end_by=1e6, why="the story"))
    assert says(run).startswith("waiting for a machine: only 30s left before the deadline")


def test_machines_that_are_full() -> None:
    run = story(lease="l0", job="j0", running_since=0.0, spec=replace(SPEC, max_machines=1))
    run.add("j1", until_step=9)
    assert why_it_waits(run.state, run.state.jobs["j1"]) == (
        "1 other trial on the machines; "
        "waiting for a machine: 1 machine held, without room for it, and max_machines=1 allows no more"
    )


def test_a_search_that_computes() -> None:
    run = story()
    run.order(d.Think(name="fit:3", question="m:f", given=None, why="the story"))
    assert says(run) == "waiting for the search, which computes: fit:3"


def test_a_run_that_is_ending() -> None:
    run = waiting()
    run.order(d.WindDown(reason="deadline_reached", why="the deadline is near"))
    assert says(run) == "ending: the deadline is near"


def test_why_ends_with_the_reason_for_which_a_trial_waits() -> None:
    run = waiting()
    run.tell(e.TimerFired(at=90.0, name="tick"))
    lines = why(run.entries, "j0", run.state)
    assert str(lines[-1]) == "0:01:30  waiting for 1 machine (small spot in a, requested at 1m30)"
    run.order(d.WindDown(reason="deadline_reached", why="the deadline is near"))
    assert why_it_waits(run.state, run.state.jobs["j0"]) == "not running: the run is ending: the deadline is near"


@pytest.mark.parametrize("denial_share", [0.0, 1.0])
def test_at_no_turn_of_a_run_is_there_nothing_to_say(denial_share: float) -> None:
    """Whenever no user code runs, a sentence says why, other than that a machine is waited for."""
    study = ss.simulate(
        space={"x": ss.uniform(0.0, 1.0)},
        minimize="loss",
        trials=6,
        max_steps=9,
        recipe="asha",
        budget=1,
        deadline="6h",
        market={"kind": "modern", "denial_share": denial_share, "interruptions_per_hour": 2},
    )
    state = RunState()
    for entry in study.entries():
        replay(state, entry)
        running = any(segment.running_since is not None for segment in state.segments.values())
        sentence = why_nothing_runs(state)
        assert running or state.concluded or sentence not in ("", "waiting for a machine"), entry
