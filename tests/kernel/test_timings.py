"""What a run has measured of start-up, restore and save times: kept also after the machine is gone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Timing
from shoestring.models.speed.latencies import MeasuredLatencies, learned_latencies, slowest_latencies
from shoestring.testing.story import SPOT, Story


def measured() -> Story:
    """A machine after 80 s, one after 40 s; a start of 20 s, a save of 3 s, a restore of 25 s."""
    run = Story()
    run.begin()
    run.add("j0", until_step=9)
    for lease, wait_s in (("l0", 80.0), ("l1", 40.0)):
        run.order(d.RequestLease(lease=lease, offer=SPOT, end_by=3600.0, why="the story"))
        run.happened(e.LeaseGranted(at=run.state.now + wait_s, lease=lease))
    run.start("s0", "j0", "l0", running_since=run.state.now + 20.0)
    run.happened(run.report("j0", 1, 0.5))
    run.happened(replace(run.save("j0", 1), took_s=3.0))
    run.end("j0", "halted", step=1)
    run.happened(e.LeaseEnded(at=run.state.now, lease="l0", cause="released", charged_usd=0.0))
    run.start("s1", "j0", "l1", running_since=run.state.now + 25.0)
    return run


def test_every_latency_is_counted_with_its_longest() -> None:
    assert measured().state.timings == {
        "provision": Timing(2, 120.0, 80.0),
        "start": Timing(1, 20.0, 20.0),
        "restore": Timing(1, 25.0, 25.0),
        "save": Timing(1, 3.0, 3.0),
    }


def test_what_is_told_twice_counts_once() -> None:
    run = measured()
    before = {kind: replace(timing) for kind, timing in run.state.timings.items()}
    run.happened(e.LeaseGranted(at=900.0, lease="l1"))
    run.happened(e.SegmentStarted(at=900.0, segment="s1"))
    assert run.state.timings == before


def test_means_and_the_slowest_are_of_the_whole_run() -> None:
    view = measured().view
    assert learned_latencies(view) == MeasuredLatencies(60.0, 20.0, 25.0, 3.0)
    assert slowest_latencies(view) == MeasuredLatencies(80.0, 20.0, 25.0, 3.0)


def test_until_then_they_are_guesses_and_a_restore_is_a_start_and_what_a_save_takes() -> None:
    run = Story()
    run.begin()
    assert learned_latencies(run.view) == MeasuredLatencies()
    run.state.timings["start"].add(40.0)
    assert learned_latencies(run.view).restore_s == pytest.approx(40.0 + MeasuredLatencies().save_s)
