"""Studies on one machine with a few slots, event by event: only the search decides, placement just fills the slots."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story

Value = Callable[[str, int], float | None]


def study(search, *, places: int = 4, **fields) -> Story:
    """A study whose machine has been granted: as many trials run as it has slots."""
    machine = Listing(offer=ON_DEMAND_OFFER, vcpus=places, memory_gb=8, slots=places, on_demand_usd_per_hour=0.01)
    run = Story(search, OnDemand(), spec=replace(SPEC, listings=(machine,), max_machines=1, **fields))
    run.begin()
    if run.state.leases:
        run.tell(e.LeaseGranted(at=1.0, lease="l0"))
    return run


def finish(run: Story, job: str, value: float | None) -> list[d.Decision]:
    """A running job reports, saves and reaches its target step: what does the search decide?"""
    step = run.state.jobs[job].until_step
    if value is not None:
        run.happened(run.report(job, step, value))
    run.happened(run.save(job, step))
    return searched(run.end(job))


def searched(decisions: list[d.Decision]) -> list[d.Decision]:
    """The decisions of the search, without those of placement."""
    return [x for x in decisions if isinstance(x, d.AddJob | d.TagJob | d.RunJob | d.DropJob)]


def running(run: Story) -> list[str]:
    return [segment.job for segment in run.state.segments.values()]


def play_out(run: Story, value: Value, order: random.Random, *, fails: float = 0.0) -> None:
    """Run everything that wants to run, in any order, until nothing does."""
    while jobs := running(run):
        job = order.choice(jobs)
        if order.random() < fails:
            run.end(job, "failed", step=0)
        else:
            finish(run, job, value(job, run.state.jobs[job].until_step))


def statuses(run: Story) -> dict[str, int]:
    return {status: count for status, count in run.state.by_status.items() if count}
