"""Slow trials are foreseen by those that resemble them, and not waited for in their first step."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.search.flex.model import curve_arrays
from shoestring.policies.search.flex.policy import Flex
from shoestring.policies.search.flex.slow_trials import LEAST_SEEN, StepTimes, too_slow
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story

MACHINE = Listing(offer=ON_DEMAND_OFFER, vcpus=64, memory_gb=64, slots=64, on_demand_usd_per_hour=0.1)


def study(*policies) -> Story:
    run = Story(*policies, spec=replace(SPEC, listings=(MACHINE,), max_machines=1, max_steps=50, deadline_s=36_000.0))
    run.begin()
    run.rent("l0", offer=ON_DEMAND_OFFER)
    return run


def trained(run: Story, job: str, x: float, step_s: float) -> None:
    """A trial trains one step of so many seconds and pauses."""
    begun(run, job, x)
    run.happened(replace(run.report(job, 1, 1.0), at=run.state.now + step_s))
    run.happened(run.save(job, 1))
    run.end(job, step=1)


def begun(run: Story, job: str, x: float = 0.5) -> None:
    run.order(d.AddJob(job=job, config={"x": x}, why="the story"))
    run.order(d.RunJob(job=job, until_step=1, slots=1, why="the story"))
    run.start(f"s{run.state.segments_made}", job, "l0", running_since=run.state.now)


def test_steps_of_an_untried_configuration_take_as_long_as_those_near_it() -> None:
    run = study()
    for number in range(12):
        trained(run, f"j{number}", number / 11, 60.0 * math.exp(2.0 * number / 11))
    times = StepTimes(curve_arrays(run.view), SpeedByWidth.of(run.view), 1)
    quick, usual, slow = times.log_ratio(np.array([[0.05], [0.5], [0.95]]))
    assert quick < -0.5
    assert abs(usual) < 0.2
    assert slow > 0.5


def test_before_anything_is_seen_all_are_alike() -> None:
    run = study()
    times = StepTimes(curve_arrays(run.view), SpeedByWidth.of(run.view), 1)
    assert times.log_ratio(np.array([[0.1], [0.9]])).tolist() == [0.0, 0.0]


def seen(run: Story, trials: int) -> None:
    for number in range(trials):
        trained(run, f"j{number}", 0.5, 60.0)


def later(run: Story, seconds: float) -> list[str]:
    run.happened(e.TimerFired(at=run.state.now + seconds, name="nobody's"))
    return [job.id for job in too_slow(run.view)]


def test_a_first_step_that_takes_too_long_is_not_waited_for() -> None:
    run = study()
    seen(run, LEAST_SEEN)
    begun(run, "new")
    assert later(run, 140.0) == []
    assert later(run, 20.0) == ["new"]


def test_no_trial_is_paused_as_slow_before_the_usual_step_time_is_known() -> None:
    run = study()
    seen(run, LEAST_SEEN - 1)
    begun(run, "new")
    assert later(run, 1000.0) == []


def test_a_trial_that_has_reported_is_waited_for() -> None:
    run = study()
    seen(run, LEAST_SEEN)
    begun(run, "new")
    run.happened(run.report("new", 1, 1.0))
    assert later(run, 1000.0) == []


def test_where_most_are_slow_in_their_first_step_that_is_how_it_is() -> None:
    """Something is set up in it: of eight that were seen, two are given up and no more."""
    run = study()
    seen(run, 8)
    for number in range(6):
        begun(run, f"new{number}")
    assert later(run, 1000.0) == ["new0", "new1"]


def test_the_slots_of_a_slow_trial_go_to_others() -> None:
    four = replace(MACHINE, slots=4)
    spec = replace(SPEC, listings=(four,), max_machines=1, trials=1000, max_steps=4, deadline_s=3600.0, slice_s=7200.0)
    run = Story(Flex(spot=False), OnDemand(), spec=spec)
    run.begin()
    run.tell(e.LeaseGranted(at=1.0, lease="l0"))
    told: list[d.Decision] = []
    while run.state.now < 300.0:  # the first trial never reports, all others do after a minute
        for segment in list(run.state.segments.values()):
            if segment.running_since is None:
                run.happened(e.SegmentStarted(at=run.state.now, segment=segment.id))
        quick = [segment for segment in list(run.state.segments.values()) if segment.job != "j0"]
        at = run.state.now + 60.0
        for segment in quick:
            report = {"segment": segment.id, "job": segment.job, "step": 1, "metrics": {"loss": 1.0}}
            told += run.tell(e.JobReported(at=at, **report))
            run.happened(run.save(segment.job, 1))
            told += run.tell(e.SegmentEnded(at=at, segment=segment.id, step=1, cause="reached"))
    assert [x.job for x in told if isinstance(x, d.PauseJob)] == ["j0"]
