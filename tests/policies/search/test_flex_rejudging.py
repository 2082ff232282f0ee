"""Trials that were ranked too early continue to where ranks hold, if their prediction is better than that of others."""

from __future__ import annotations

import math

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Listing
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.search.flex.model import posterior_now
from shoestring.policies.search.flex.proposals import Rejudged, rejudged
from shoestring.policies.search.flex.resources import resources_now
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story

MACHINE = Listing(offer=ON_DEMAND_OFFER, vcpus=64, memory_gb=64, slots=64, on_demand_usd_per_hour=0.1)
GRACE = 4


def trained(run: Story, job: str, x: float, steps: int, step_s: float = 60.0, loss: float | None = None) -> None:
    """Towards a loss of x, unless given."""
    run.order(d.AddJob(job=job, config={"x": x}, why="the story"))
    run.order(d.RunJob(job=job, until_step=steps, slots=1, why="the story"))
    run.start(f"s{run.state.segments_made}", job, "l0", running_since=run.state.now)
    for step in range(1, steps + 1):
        run.happened(
            replace(run.report(job, step, x + 1.0 / step if loss is None else loss), at=run.state.now + step_s)
        )
    run.happened(run.save(job, steps))
    run.end(job, step=steps)


def study() -> Story:
    """Where x is small the loss is: seven trials say so at the step where ranks hold."""
    run = Story(spec=replace(SPEC, listings=(MACHINE,), max_machines=1, max_steps=50, deadline_s=86_400.0))
    run.begin()
    run.rent("l0", offer=ON_DEMAND_OFFER)
    for number, x in enumerate((0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0)):
        trained(run, f"far{number}", x, GRACE)
    return run


def found(run: Story) -> Rejudged | None:
    posterior = posterior_now(run.view, None, GRACE)
    assert posterior is not None
    now = resources_now(run.view, spot=False)
    return rejudged(run.view, posterior, SpeedByWidth.of(run.view), now, grace=GRACE, alone=16, kappa=0.0)


def test_a_trial_that_was_ranked_late_enough_is_not_ranked_again() -> None:
    assert found(study()) is None


def test_the_one_with_the_best_neighbours_is() -> None:
    run = study()
    for job, x in (("bad", 0.9), ("good", 0.1), ("middling", 0.5)):
        trained(run, job, x, 1)
    again = found(run)
    assert again is not None
    assert again.job.id == "good"


def test_of_two_alike_the_one_that_takes_less() -> None:
    run = study()
    trained(run, "slow", 0.1, 1, step_s=300.0)
    trained(run, "quick", 0.1, 1)
    again = found(run)
    assert again is not None
    assert again.job.id == "quick"


def test_of_two_alike_the_one_that_is_nearly_there() -> None:
    run = study()
    trained(run, "begun", 0.1, 1)
    trained(run, "nearly there", 0.1, GRACE - 1)
    again = found(run)
    assert again is not None
    assert again.job.id == "nearly there"


def test_diverged_and_running_trials_are_left_alone() -> None:
    run = study()
    run.order(d.AddJob(job="runs", config={"x": 0.1}, why="the story"))
    run.order(d.RunJob(job="runs", until_step=2, slots=1, why="the story"))
    run.start(f"s{run.state.segments_made}", "runs", "l0")
    run.happened(run.report("runs", 1, 1.0))
    trained(run, "diverged", 0.1, 1, loss=math.nan)
    assert found(run) is None
