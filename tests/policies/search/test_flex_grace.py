"""New trials are judged where ranks hold: scouts go further to find out."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Listing
from shoestring.policies.search.flex.grace import ENOUGH, SCOUT, SHARE, grace_steps, next_scout, rank_correlation
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story

MACHINE = Listing(offer=ON_DEMAND_OFFER, vcpus=64, memory_gb=64, slots=64, on_demand_usd_per_hour=0.1)
PLENTY = 10_000.0


def scouted(curves: list[list[float]], **fields) -> Story:
    """A study whose scouts reported these curves, a value a step."""
    run = Story(spec=replace(SPEC, listings=(MACHINE,), max_steps=50, **fields))
    run.begin()
    run.rent("l0", offer=ON_DEMAND_OFFER)
    for number, curve in enumerate(curves):
        job = f"j{number}"
        run.order(d.AddJob(job=job, config={"x": 0.5}, tags={SCOUT: 4}, why="the story"))
        run.order(d.RunJob(job=job, until_step=50, slots=1, why="the story"))
        run.start(f"s{number}", job, "l0")
        for step, value in enumerate(curve, start=1):
            run.happened(run.report(job, step, value))
    return run


def test_without_scouts_the_grace_steps_are_those_of_the_user() -> None:
    run = scouted([])
    assert grace_steps(run.view, 2) == 2


def test_where_ranks_hold_nothing_changes() -> None:
    run = scouted([[level, level, level - 0.1, level - 0.2] for level in range(ENOUGH)])
    assert grace_steps(run.view, 2) == 2


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_where_ranks_change_all_trials_are_trained_twice_as_far(direction) -> None:
    run = scouted([[level, level, -level, -level] for level in range(ENOUGH)], direction=direction)
    assert grace_steps(run.view, 2) == 4


def test_it_is_the_first_step_with_the_ranks_of_where_scouts_have_arrived() -> None:
    run = scouted([[level, level, -level, -level, 0, 0, -level, -level] for level in range(ENOUGH)])
    assert grace_steps(run.view, 1) == 4
    run = scouted([[level, level, -level, -level, 0, 0, level, level] for level in range(ENOUGH)])
    assert grace_steps(run.view, 1) == 1


def test_a_few_scouts_conclude_nothing() -> None:
    run = scouted([[level, level, -level, -level] for level in range(ENOUGH - 1)])
    assert grace_steps(run.view, 2) == 2


def resting(run: Story, job: str, step: int) -> None:
    """A new trial reports up to a step and stops there."""
    run.add(job, until_step=step)
    run.start(f"s{run.state.segments_made}", job, "l0")
    for reported in range(1, step + 1):
        run.happened(run.report(job, reported, 1.0))
    run.happened(run.save(job, step))
    run.end(job, step=step)


def test_the_first_ranked_trials_become_scouts_until_there_are_enough() -> None:
    run = scouted([[1.0, 1.0]] * (ENOUGH - 1))
    assert next_scout(run.view, 2, PLENTY) is None  # they run: nobody rests
    resting(run, "another", 2)
    assert next_scout(run.view, 2, PLENTY) == (run.state.jobs["another"], 4)  # as far as the others go
    run.order(d.TagJob(job="another", tags={SCOUT: 4}, why="the story"))
    resting(run, "late", 2)
    assert next_scout(run.view, 2, PLENTY) is None  # enough


def test_scouts_go_as_far_as_the_study_can_afford_and_no_further_than_a_quarter_of_the_way() -> None:
    run = scouted([])
    resting(run, "j0", 2)
    for there in (4, 8):
        needed = ENOUGH * (there - 1) / SHARE
        assert next_scout(run.view, 1, needed) == (run.state.jobs["j0"], there)
    assert next_scout(run.view, 1, PLENTY) == (run.state.jobs["j0"], 8)  # of 50 steps
    assert next_scout(run.view, 2, ENOUGH * (8 - 2) / SHARE - 1) is None  # twice as far is not worth it


def test_rank_correlation() -> None:
    assert rank_correlation([(1, 10), (2, 20), (3, 30)]) == pytest.approx(1.0)
    assert rank_correlation([(1, 30), (2, 20), (3, 10)]) == pytest.approx(-1.0)
    assert rank_correlation([(1, 1), (1, 2), (1, 3)]) == 0.0
    assert rank_correlation([(1, 1), (2, math.nan), (3, math.nan), (4, math.nan)]) > 0.5
