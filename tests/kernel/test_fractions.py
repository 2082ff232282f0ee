"""Trials on data fractions, and their snapshots at smaller fractions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shoestring.errors import IllegalDecision
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.records import Snapshot
from shoestring.policies.placement.renting.assign import start_on
from shoestring.policies.placement.renting.packing import Packing
from shoestring.testing.story import SPEC, Story, story

FRACTIONS = (1 / 16, 1 / 4, 1.0)


def running(fraction: float = 1.0) -> Story:
    """j0 runs on l0 up to step 9, on a data fraction."""
    run = story(spec=replace(SPEC, fractions=FRACTIONS, seed=7), lease="l0")
    run.add("j0", until_step=9, fraction=fraction)
    run.start("s0", "j0", "l0", running_since=0.0)
    return run


def later(event: e.Event, at: float) -> e.Event:
    return replace(event, at=at)


def test_the_data_fraction_of_a_job_never_changes() -> None:
    run = story(spec=SPEC)
    run.order(
        d.AddJob(job="j0", config={}, fraction=0.25, why="the story"), d.AddJob(job="j1", config={}, why="the story")
    )
    assert [job.fraction for job in run.state.jobs.values()] == [0.25, 1.0]
    assert [job.fraction for job in run.replayed().jobs.values()] == [0.25, 1.0]


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1, math.nan, math.inf])
def test_a_data_fraction_outside_0_to_1_is_illegal(fraction: float) -> None:
    with pytest.raises(IllegalDecision, match=f"AddJob gives j0 {fraction} of the data"):
        story().order(d.AddJob(job="j0", config={}, fraction=fraction, why="the story"))


def test_a_segment_receives_the_fraction_the_seed_and_the_smaller_fractions_not_observed_yet() -> None:
    run = story(spec=replace(SPEC, fractions=FRACTIONS, seed=7), lease="l0")
    run.add("j0", until_step=9)
    order = start_on(run.view, run.state.jobs["j0"], Packing(leases=("l0",), slots=(1,)))
    assert (order.fraction, order.fractions, order.seed) == (1.0, (1 / 16, 1 / 4), 7)
    run.order(order)
    run.happened(run.snapshot("j0", 1 / 16, 0.5))
    run.end("j0", "lost", step=0)
    order = start_on(run.view, run.state.jobs["j0"], Packing(leases=("l0",), slots=(1,)))
    assert (order.fraction, order.fractions, order.seed) == (1.0, (1 / 4,), 7)


def test_a_trial_on_the_smallest_fraction_reports_no_snapshots() -> None:
    run = story(spec=replace(SPEC, fractions=FRACTIONS), lease="l0")
    run.add("j0", until_step=9, fraction=1 / 16)
    order = start_on(run.view, run.state.jobs["j0"], Packing(leases=("l0",), slots=(1,)))
    assert (order.fraction, order.fractions) == (1 / 16, ())


def test_a_snapshot_is_an_observation_and_no_point_of_the_curve() -> None:
    run = running()
    run.happened(later(run.report("j0", 1, 0.5), 10.0))
    job = run.state.jobs["j0"]
    before = (job.step, job.latest, job.best, list(job.steps), list(job.values), run.state.best, job.paces)
    pace = run.state.segments["s0"].pace
    run.happened(later(run.snapshot("j0", 1 / 16, 0.01, step=2), 12.0))
    assert (job.step, job.latest, job.best, list(job.steps), list(job.values), run.state.best, job.paces) == before
    assert run.state.segments["s0"].pace == pace
    assert job.snapshots == {1 / 16: Snapshot(2, {"loss": 0.01}, 12.0)}


def test_the_time_of_a_snapshot_leaves_out_start_up_and_saves() -> None:
    run = story(spec=SPEC, lease="l0")
    run.add("j0", until_step=9)
    run.start("s0", "j0", "l0", running_since=100.0)
    run.happened(later(run.report("j0", 1, 0.5), 110.0))
    run.happened(later(run.save("j0", 1), 115.0))  # five seconds of it were saving
    run.happened(later(run.snapshot("j0", 0.5, 0.4, step=2), 121.0))
    assert run.state.jobs["j0"].snapshots[0.5].seconds == 16.0


def test_after_a_restore_the_time_before_the_checkpoint_counts_and_lost_work_does_not() -> None:
    run = running()
    run.happened(later(run.report("j0", 1, 0.5), 10.0), later(run.save("j0", 1), 11.0))
    run.happened(later(run.report("j0", 2, 0.5), 21.0), later(run.report("j0", 3, 0.5), 31.0))
    run.end("j0", "lost", step=3)  # steps 2 and 3 are lost
    run.start("s1", "j0", "l0", running_since=100.0)
    run.happened(later(run.snapshot("j0", 0.25, 0.4, step=2), 105.0))
    assert run.state.jobs["j0"].snapshots[0.25].seconds == pytest.approx(10.0 + 5.0)


def test_a_restored_trial_that_passes_a_fraction_again_adds_nothing() -> None:
    run = running()
    run.happened(later(run.snapshot("j0", 1 / 16, 0.5), 4.0))
    run.end("j0", "lost", step=0)
    run.start("s1", "j0", "l0", running_since=50.0)
    run.happened(later(run.snapshot("j0", 1 / 16, 0.7), 60.0), later(run.snapshot("j0", 1 / 4, 0.3), 70.0))
    assert run.state.jobs["j0"].snapshots == {
        1 / 16: Snapshot(0, {"loss": 0.5}, 4.0),
        1 / 4: Snapshot(0, {"loss": 0.3}, 20.0),
    }


@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0, 0.0, math.nan])
def test_only_smaller_fractions_than_its_own_are_snapshots(fraction: float) -> None:
    run = running(fraction=0.25)
    run.happened(run.snapshot("j0", fraction, 0.1))
    assert run.state.jobs["j0"].snapshots == {}


def test_a_snapshot_of_a_closed_segment_is_old_news() -> None:
    run = running()
    late = run.snapshot("j0", 1 / 4, 0.1)
    run.end("j0", "lost", step=0)
    run.happened(late)
    assert run.state.jobs["j0"].snapshots == {}


def test_a_snapshot_and_a_report_of_one_step_are_two_happenings() -> None:
    run, past = running(), RecordedEvents()
    news = [run.report("j0", 1, 0.1), run.snapshot("j0", 1 / 16, 0.3, step=1), run.snapshot("j0", 1 / 4, 0.2, step=1)]
    assert [past.is_new(event) for event in news] == [True, True, True]
    assert [past.is_new(event) for event in news] == [False, False, False]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([1 / 16, 1 / 4, 1 / 2]), max_size=6), st.integers(0, 6))
def test_snapshots_never_change_the_result_of_a_run(fractions: list[float], before: int) -> None:
    """The same run with and without them: the same curve, pace, best and end."""
    plain, with_snapshots = running(), running()
    for run in (plain, with_snapshots):
        for step in range(1, 7):
            run.happened(later(run.report("j0", step, 1 / step), 10.0 * step))
            if run is with_snapshots and step == before:
                run.happened(*(later(run.snapshot("j0", part, 0.001), 10.0 * step) for part in fractions))
        run.end("j0", "completed", step=6)
    with_snapshots.state.jobs["j0"].snapshots.clear()
    assert with_snapshots.state.jobs["j0"] == plain.state.jobs["j0"]
    assert (with_snapshots.state.best, with_snapshots.state.settled) == (plain.state.best, plain.state.settled)
