"""Speeds are learned from reports: seconds a step, and what more slots are worth."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.models.speed.prior import SLOT_GAIN, STEP_S
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story

MACHINE = Listing(offer=ON_DEMAND_OFFER, vcpus=16, memory_gb=64, slots=8, on_demand_usd_per_hour=0.1)


def study(**fields) -> Story:
    run = Story(spec=replace(SPEC, listings=(MACHINE,), **fields))
    run.begin()
    run.rent("l0", offer=ON_DEMAND_OFFER)
    return run


def train(run: Story, job: str, slots: int, *, step_s: float, steps: int = 2) -> None:
    """A trial is trained for a while at a width, saves and stops."""
    if job not in run.state.jobs:
        run.add(job)
    run.order(d.RunJob(job=job, until_step=SPEC.max_steps, slots=slots, why="the story"))
    run.start(f"s{run.state.segments_made}", job, "l0")
    first = run.state.jobs[job].step
    for step in range(first + 1, first + steps + 1):
        run.state.now += step_s
        run.happened(run.report(job, step, 1.0))
    run.happened(run.save(job, first + steps))
    run.end(job, "halted", step=first + steps)
    run.order(d.PauseJob(job=job, why="the story"))


def test_before_anything_is_seen_speeds_are_guesses() -> None:
    run = study()
    run.add("j0")
    assert SpeedByWidth.of(run.view).speedup(1) == 1.0
    assert SpeedByWidth.of(run.view).speedup(4) == pytest.approx(4**SLOT_GAIN)
    assert SpeedByWidth.of(run.view).step_s("j0", 1) == STEP_S


def test_a_trial_measured_at_two_widths_shows_the_speed_up() -> None:
    run = study()
    for number in range(6):
        train(run, f"j{number}", 1, step_s=60.0 * (number + 1))
        train(run, f"j{number}", 4, step_s=60.0 * (number + 1) / 4**0.5)
    assert SpeedByWidth.of(run.view).speedup(4) == pytest.approx(4**0.5, rel=0.1)
    assert (
        8**0.5 < SpeedByWidth.of(run.view).speedup(8) < 8**SLOT_GAIN
    )  # never seen: between what is seen and the guess


def test_trials_that_differ_are_not_mistaken_for_widths() -> None:
    run = study()
    train(run, "j0", 1, step_s=60.0)
    train(run, "j1", 4, step_s=120.0)
    assert SpeedByWidth.of(run.view).speedup(4) > 2.0  # twice as slow on four slots, or another trial: rather that


def test_a_hiccup_counts_for_no_more_than_no_gain_at_all() -> None:
    run = study()
    train(run, "j0", 1, step_s=60.0)
    train(run, "j0", 4, step_s=6000.0)
    assert SpeedByWidth.of(run.view).speedup(4) > 1.0


def test_a_new_trial_is_as_fast_as_the_others_are_on_the_whole() -> None:
    run = study()
    train(run, "j0", 1, step_s=30.0)
    train(run, "j1", 1, step_s=120.0)
    run.add("j2")
    speeds = SpeedByWidth.of(run.view)
    assert speeds.usual_s(1) == speeds.step_s("j2", 1) == pytest.approx(60.0)
    assert speeds.step_s("j0", 1) == pytest.approx(30.0, rel=0.01)


def test_a_trial_seen_only_wide_is_slower_on_one_slot() -> None:
    run = study()
    train(run, "j0", 2, step_s=30.0)
    assert SpeedByWidth.of(run.view).step_s("j0", 1) == pytest.approx(30.0 * 2**SLOT_GAIN)


def test_what_runs_now_counts_before_it_ends() -> None:
    run = study()
    run.add("j0", until_step=9)
    run.start("s0", "j0", "l0")
    run.happened(e.JobReported(at=run.state.now + 42.0, segment="s0", job="j0", step=1, metrics={"loss": 1.0}))
    assert SpeedByWidth.of(run.view).step_s("j0", 1) == pytest.approx(42.0)


def test_widths_count_in_workers_of_several_slots() -> None:
    run = study(slots=2)
    assert SpeedByWidth.of(run.view).speedup(2) == 1.0
    assert SpeedByWidth.of(run.view).speedup(8) == pytest.approx(4**SLOT_GAIN)


def test_a_cached_model_equals_a_rebuilt_one() -> None:
    run = study()
    for number in range(4):
        SpeedByWidth.of(run.view).speedup(4)
        train(run, f"j{number}", 1, step_s=60.0)
        SpeedByWidth.of(run.view).speedup(4)
        train(run, f"j{number}", 4, step_s=25.0)
    kept = SpeedByWidth.of(run.view).speedup(4), SpeedByWidth.of(run.view).usual_s(1)
    run.state.memos.clear()
    assert (SpeedByWidth.of(run.view).speedup(4), SpeedByWidth.of(run.view).usual_s(1)) == kept
