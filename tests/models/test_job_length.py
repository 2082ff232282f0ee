"""How long a job of a bag takes, from those that are done."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import events as e
from shoestring.kernel.records import Pace, Rest
from shoestring.kernel.types import Listing, Offer
from shoestring.models.job_length import JobLengths, work_left_s
from shoestring.placement.cheapest import Cheapest
from shoestring.testing.story import SPEC, Story, story


def machine(name: str, vcpus: float) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=name, spot=True)
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, on_demand_usd_per_hour=1.0)


SMALL, LARGE = machine("small", 2), machine("large", 8)


def bag(*seconds: float, where: str = "small") -> Story:
    run = Story(Cheapest(), spec=replace(SPEC, listings=(SMALL, LARGE), max_steps=1))
    run.begin()
    for number, took_s in enumerate(seconds):
        job = f"j{number}"
        run.add(job, until_step=1)
        run.state.jobs[job].paces[where, 1] = Pace(1, took_s)
        run.state.rests.append(Rest(job, "finished", 1, 1, None))
    return run


def test_before_a_job_is_done_nobody_knows() -> None:
    assert JobLengths.of(bag().view).step_time(SMALL, 1) is None


def test_jobs_take_what_jobs_took() -> None:
    seen = JobLengths.of(bag(*[600.0] * 50).view).step_time(SMALL, 1)
    assert seen is not None
    assert seen.expected_s == pytest.approx(600.0, rel=0.01)
    assert seen.log_sd < 0.1


def test_on_a_machine_nobody_tried_it_is_a_guess_by_size_and_a_wide_one() -> None:
    lengths = JobLengths.of(bag(*[600.0] * 50).view)
    guess, seen = lengths.step_time(LARGE, 1), lengths.step_time(SMALL, 1)
    assert guess is not None
    assert seen is not None
    assert guess.median_s == pytest.approx(600.0 / 4**0.7, rel=0.01)
    assert guess.log_sd > 3 * seen.log_sd
    assert lengths.tried(SMALL, 1)
    assert not lengths.tried(LARGE, 1)


def test_reading_on_comes_to_the_same_as_reading_everything() -> None:
    run = bag(500.0, 700.0)
    JobLengths.of(run.view)
    for number, took_s in ((2, 650.0), (3, 610.0)):
        run.add(f"j{number}", until_step=1)
        run.state.jobs[f"j{number}"].paces["small", 1] = Pace(1, took_s)
        run.state.rests.append(Rest(f"j{number}", "finished", 1, 1, None))
    read_on = JobLengths.of(run.view).step_time(SMALL, 1)
    run.state.memos.clear()
    assert JobLengths.of(run.view).step_time(SMALL, 1) == read_on


def test_jobs_that_failed_or_were_dropped_tell_nothing() -> None:
    run = bag(600.0)
    run.state.rests[0] = Rest("j0", "failed", 0, 1, None)
    assert JobLengths.of(run.view).step_time(SMALL, 1) is None


def test_what_a_running_job_has_done_is_off_what_is_left() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0, spec=replace(SPEC, max_steps=1))
    run.state.jobs["j0"].until_step = 1
    run.add("j1", until_step=1)
    run.state.jobs["j1"].paces["small", 1] = Pace(1, 600.0)
    run.state.rests.append(Rest("j1", "finished", 1, 1, None))
    run.happened(e.TimerFired(at=400.0, name="tick"))
    expected = JobLengths.of(run.view).step_time(SPEC.listings[0], 1).expected_s
    assert work_left_s(run.view, "j0", SPEC.listings[0], 1) == pytest.approx(expected - 400.0)
    run.happened(e.TimerFired(at=4000.0, name="tick"))
    assert work_left_s(run.view, "j0", SPEC.listings[0], 1) == pytest.approx(0.1 * expected)


def test_a_program_that_never_reports_is_timed_from_its_start_to_its_end() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=10.0, spec=replace(SPEC, max_steps=1))
    run.state.jobs["j0"].until_step = 1
    run.happened(e.SegmentEnded(at=310.0, segment="s0", step=0, cause="completed"))
    assert run.state.jobs["j0"].paces == {("small", 1): Pace(1, 300.0)}
