"""How long a job of a bag takes, from finished jobs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import events as e
from shoestring.kernel.records import Pace, Settled
from shoestring.kernel.types import Listing, Offer
from shoestring.models.speed.job_length import JobLengths, work_left_s
from shoestring.policies.placement.cheapest import Cheapest
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
        run.state.settled.append(Settled(job, "finished", 1, 1, None))
    return run


def test_before_a_job_is_done_its_length_is_unknown() -> None:
    assert JobLengths.of(bag().view).step_time(SMALL, 1) is None


def test_later_jobs_take_as_long_as_earlier_ones() -> None:
    seen = JobLengths.of(bag(*[600.0] * 50).view).step_time(SMALL, 1)
    assert seen is not None
    assert seen.expected_s == pytest.approx(600.0, rel=0.01)
    assert seen.log_sd < 0.1


def test_on_an_untried_machine_the_length_is_extrapolated_by_size_with_a_larger_variance() -> None:
    lengths = JobLengths.of(bag(*[600.0] * 50).view)
    guess, seen = lengths.step_time(LARGE, 1), lengths.step_time(SMALL, 1)
    assert guess is not None
    assert seen is not None
    assert guess.median_s == pytest.approx(600.0 / 4**0.7, rel=0.05)
    assert guess.log_sd > 3 * seen.log_sd
    apart = lengths.speeds.apart([(SMALL, 1), (LARGE, 1)]).log_sd(("large", 1), ("small", 1))
    assert 0.0 < apart < guess.log_sd  # without what differs from one job to another


def test_incremental_reading_equals_reading_everything() -> None:
    run = bag(500.0, 700.0)
    JobLengths.of(run.view)
    for number, took_s in ((2, 650.0), (3, 610.0)):
        run.add(f"j{number}", until_step=1)
        run.state.jobs[f"j{number}"].paces["small", 1] = Pace(1, took_s)
        run.state.settled.append(Settled(f"j{number}", "finished", 1, 1, None))
    read_on = JobLengths.of(run.view).step_time(SMALL, 1)
    run.state.memos.clear()
    assert JobLengths.of(run.view).step_time(SMALL, 1) == read_on


def test_a_job_that_runs_longer_than_others_is_expected_to_continue_so() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0)
    run.add("j1", until_step=9)
    run.state.jobs["j1"].paces["small", 1] = Pace(9, 5400.0)
    run.state.settled.append(Settled("j1", "finished", 9, 9, None))
    run.happened(replace(run.report("j0", 4, 0.5), at=4800.0))
    left_s, typical = work_left_s(run.view, "j0", SPEC.listings[0], 1), JobLengths.of(run.view)
    assert left_s == pytest.approx(5 * 1200.0, rel=0.02)
    assert typical.step_time(SPEC.listings[0], 1).median_s < 1000.0


def test_the_progress_of_a_running_job_is_subtracted() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0, spec=replace(SPEC, max_steps=1))
    run.state.jobs["j0"].until_step = 1
    run.add("j1", until_step=1)
    run.state.jobs["j1"].paces["small", 1] = Pace(1, 600.0)
    run.state.settled.append(Settled("j1", "finished", 1, 1, None))
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


# -- more slots --------------------------------------------------------------------------------------------------------
def widths(**seconds: float) -> JobLengths:
    """Ten jobs on each of some numbers of slots of the small machine: w1=600.0, w2=..."""
    run = bag(*[took_s for took_s in seconds.values() for _ in range(10)])
    for number, slots in enumerate(int(word[1:]) for word in seconds for _ in range(10)):
        paces = run.state.jobs[f"j{number}"].paces
        paces["small", slots] = paces.pop(("small", 1))
    return JobLengths.of(run.view)


def median_s(lengths: JobLengths, listing: Listing, slots: int) -> float:
    step = lengths.step_time(listing, slots)
    assert step is not None
    return step.median_s


def test_before_a_gang_was_observed_more_slots_help_as_is_usual() -> None:
    assert median_s(widths(w1=600.0), SMALL, 4) == pytest.approx(600.0 / 4**0.8)


@pytest.mark.parametrize("gain", [0.0, 0.3, 1.0])
def test_the_speedup_of_two_machines_predicts_that_of_four(gain: float) -> None:
    lengths = widths(w1=600.0, w2=600.0 / 2**gain)
    learned = median_s(lengths, SMALL, 2) / median_s(lengths, SMALL, 4)
    assert abs(learned - 2**gain) < 0.2 * abs(2**0.8 - 2**gain) + 0.01


def test_and_of_other_machine_types_too() -> None:
    scales_badly, scales_well = widths(w1=600.0, w2=590.0), widths(w1=600.0, w2=300.0)
    assert median_s(scales_badly, LARGE, 1) == pytest.approx(median_s(scales_well, LARGE, 1), rel=0.06)
    assert median_s(scales_badly, LARGE, 2) > 1.3 * median_s(scales_well, LARGE, 2)


def test_the_variance_for_wider_gangs_falls_with_the_gangs_observed() -> None:
    known, guessed = widths(w1=600.0, w2=350.0).step_time(SMALL, 8), widths(w1=600.0).step_time(SMALL, 8)
    assert known is not None
    assert guessed is not None
    assert known.log_sd < guessed.log_sd


def test_the_spread_between_jobs_is_pooled_over_machines() -> None:
    """A first gang after many similar jobs has a smaller variance than the very first job had."""
    run = bag(*[600.0] * 20, 350.0)
    paces = run.state.jobs["j20"].paces
    paces["small", 2] = paces.pop(("small", 1))
    seen = JobLengths.of(run.view).step_time(SMALL, 2)
    assert seen is not None
    assert seen.log_sd < 0.2


# -- jobs that end by themselves ---------------------------------------------------------------------------------------
OPEN_ENDED = replace(SPEC, kind="bag", metric=None, max_steps=1, open_ended=True)


def ended(run: Story, job: str, *, reports: int, at: float) -> None:
    """A job that runs now reports so many steps, and ends by itself."""
    segment = run.state.jobs[job].segment
    for step in range(1, reports + 1):
        run.happened(replace(run.report(job, step, 0.0), at=run.state.now + 1.0))
    run.happened(e.SegmentEnded(at=at, segment=segment, step=reports, cause="completed"))


@pytest.mark.parametrize("reports", [0, 1, 7])
def test_a_job_of_a_bag_is_as_long_as_it_ran_however_often_it_reports(reports: int) -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=10.0, spec=OPEN_ENDED)
    assert run.view.paces(run.state.jobs["j0"]) == {}
    ended(run, "j0", reports=reports, at=310.0)
    assert run.state.jobs["j0"].status == "finished"
    (pace,) = run.view.paces(run.state.jobs["j0"]).values()
    assert pace.seconds / pace.steps == pytest.approx(300.0)


def test_of_a_job_that_ran_in_two_places_each_part_counts_by_its_steps() -> None:
    """Thirty steps are lost with the machine and done again: that does not make the job longer."""
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0, spec=OPEN_ENDED)
    run.happened(replace(run.report("j0", 40, 0.0), at=400.0))
    run.happened(replace(run.save("j0", 10), at=400.0))
    run.happened(e.SegmentEnded(at=400.0, segment="s0", step=40, cause="lost"))
    assert run.state.jobs["j0"].step == 10
    run.start("s1", "j0", "l0", running_since=500.0)
    run.happened(replace(run.report("j0", 90, 0.0), at=1300.0))
    run.happened(e.SegmentEnded(at=1400.0, segment="s1", step=100, cause="completed"))
    (pace,) = run.view.paces(run.state.jobs["j0"]).values()
    assert pace.seconds / pace.steps == pytest.approx(1000.0, rel=0.01)


def test_a_resumed_job_that_never_said_how_far_it_was_tells_nothing_about_the_length() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0, spec=OPEN_ENDED)
    run.happened(replace(run.save("j0", 0), at=400.0))
    run.happened(e.SegmentEnded(at=400.0, segment="s0", step=0, cause="halted"))
    run.start("s1", "j0", "l0", running_since=500.0)
    run.happened(e.SegmentEnded(at=600.0, segment="s1", step=0, cause="completed"))
    assert run.state.jobs["j0"].status == "finished"
    assert run.view.paces(run.state.jobs["j0"]) == {}


def test_finished_jobs_tell_how_far_a_running_one_is() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0, spec=OPEN_ENDED)
    listing = SPEC.listings[0]
    assert work_left_s(run.view, "j0", listing, 1) is None
    ended(run, "j0", reports=10, at=1000.0)
    run.add("j1", until_step=1)
    run.start("s1", "j1", "l0", running_since=1000.0)
    expected_s = JobLengths.of(run.view).step_time(listing, 1).expected_s
    run.happened(replace(run.report("j1", 4, 0.0), at=1400.0))
    assert work_left_s(run.view, "j1", listing, 1) == pytest.approx(0.6 * expected_s)
    run.happened(replace(run.report("j1", 14, 0.0), at=2400.0))
    assert work_left_s(run.view, "j1", listing, 1) == pytest.approx(0.1 * expected_s), "longer than any before it"
    assert run.state.jobs["j1"].status == "running"


def test_until_a_job_has_finished_the_estimate_of_the_user_counts() -> None:
    run = story(Cheapest(), lease="l0", job="j0", running_since=0.0, spec=replace(OPEN_ENDED, job_takes_s=7200.0))
    listing = SPEC.listings[0]
    on_four = 7200.0 * (4 / (listing.vcpus / listing.slots)) ** 0.7
    assert work_left_s(run.view, "j0", listing, 1) == pytest.approx(on_four)
    assert JobLengths.of(run.view).step_time(listing, 1) is None, "nothing has been measured"
    run.happened(e.TimerFired(at=1000.0, name="tick"))
    assert work_left_s(run.view, "j0", listing, 1) == pytest.approx(on_four - 1000.0)
    ended(run, "j0", reports=0, at=1200.0)
    run.add("j1", until_step=1)
    assert work_left_s(run.view, "j1", listing, 1) == pytest.approx(1200.0, rel=0.4)


def test_max_steps_of_a_bag_scales_the_progress_of_its_first_jobs() -> None:
    run = story(
        Cheapest(), lease="l0", job="j0", running_since=0.0, spec=replace(OPEN_ENDED, max_steps=10, open_ended=False)
    )
    run.happened(replace(run.report("j0", 4, 0.0), at=400.0))
    left_s = work_left_s(run.view, "j0", SPEC.listings[0], 1)
    assert left_s == pytest.approx(600.0, rel=0.4)
    ended(run, "j0", reports=20, at=2000.0)
    assert run.state.jobs["j0"].status == "finished", "whatever max_steps is"
    assert sum(pace.steps for pace in run.view.paces(run.state.jobs["j0"]).values()) == pytest.approx(10)
