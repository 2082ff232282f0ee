"""RubberBand: a fixed elimination schedule on the machines that finish it before the deadline at the lowest cost.

All trials of a stage reach its last step, then the best are promoted. Before each stage the rest of the run is
replanned with the speed measured so far. The allocation of a stage is in the tags of its trials: placement rents what
they wait for, and `AsPlanned` releases what the next stage does not need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import JobId, Tags
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.release_by_plan import KEEP
from shoestring.policies.search.rubberband.greedy import cheapest, fastest
from shoestring.policies.search.rubberband.inputs import UNKNOWN, PlanInputs
from shoestring.policies.search.rubberband.plan import CostModel, RubberbandPlan, Schedule
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, SEARCH_WAKERS, Sampler, next_config
from shoestring.units import show_duration, show_usd

STAGE, RANK, WIDTH, PLACES = "stage", "rank", "width", "places"
"""Tags of a trial: its stage, its rank there, its slots, and how many trials of the stage run at once."""

Planner = Callable[[Schedule, CostModel, float, int], RubberbandPlan]
"""(remaining schedule, cost model, seconds left, machines in hand) -> plan."""


def as_cheap_as_the_deadline_allows(
    schedule: Schedule, cost_model: CostModel, left_s: float, in_hand: int
) -> RubberbandPlan:
    return cheapest(schedule, cost_model, left_s, in_hand=in_hand) or fastest(schedule, cost_model, in_hand=in_hand)


@dataclass(frozen=True)
class Rubberband:
    schedule: Schedule
    outlook: PlanInputs = UNKNOWN
    sampler: Sampler = RANDOM_SAMPLER
    planner: Planner = as_cheap_as_the_deadline_allows
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running":
            return
        stage = state.memo(self, lambda: _Stage(state.jobs.values()))
        if not stage.members:
            yield from self._open(state, stage)
        while True:
            yield from self._fill(state, stage)
            if _wanted(state) or not (yield from self._next_stage(state, stage)):
                return

    def plan(self, state: RunView) -> RubberbandPlan:
        """The plan at the start of a run."""
        return self.planner(self.schedule, self.outlook.now(state, []), self.outlook.left_s(state), 0)

    # -- within a stage ------------------------------------------------------------------------------------------------
    def _open(self, state: RunView, stage: _Stage) -> Iterator[d.Decision]:
        """If later stages use wider trials, the very first trial measures the speed-up: a plan should not rest on a
        guess for long. It uses at most one machine, or twice the planned width; the speed-up of wider trials is
        extrapolated."""
        plan, cost_model = self.plan(state), self.outlook.now(state, [])
        tags, width = _tags(0, plan), plan.stages[0].slots
        if any(planned.slots > width for planned in plan.stages) and plan.stages[0].places > 1:
            wider = [slots for slots in cost_model.widths() if width < slots <= max(cost_model.slots, 2 * width)]
            if wider:
                why = f"measure the speed-up on {wider[-1]} slots"
                yield from self._new_trial(state, stage, {**tags, WIDTH: wider[-1]}, why)
        yield from self._new_trial(state, stage, tags, self._summary(plan, 0))

    def _fill(self, state: RunView, stage: _Stage) -> Iterator[d.Decision]:
        """Run the trials of the stage, as many at once as it has places for."""
        round_ = self.schedule[stage.index]
        places = _number(state.jobs[stage.members[-1]], PLACES)
        while stage.index == 0 and len(stage.members) < round_.trials and _wanted(state) < places:
            like = state.jobs[stage.members[-1]].tags  # trials that measure other widths come first
            yield from self._new_trial(state, stage, dict(like), f"one of {places} that run at once")
        while _wanted(state) < places and (job := stage.next_up(state, round_.until_step)) is not None:
            yield d.RunJob(
                job=job.id,
                until_step=round_.until_step,
                slots=_number(job, WIDTH),
                why=f"stage {stage.index + 1} of {len(self.schedule)}, to step {round_.until_step}",
            )

    def _new_trial(self, state: RunView, stage: _Stage, tags: Tags, why: str) -> Iterator[d.Decision]:
        number, job, round_ = len(state.jobs), state.next_job(), self.schedule[0]
        sample = next_config(state, number, job, self.sampler)
        tags[RANK] = number
        yield d.AddJob(
            job=job, config=sample.config, tags=tags, why=f"trial {number + 1} of {round_.trials}, {sample.origin}"
        )
        stage.members.append(job)
        yield d.RunJob(job=job, until_step=round_.until_step, slots=_number(state.jobs[job], WIDTH), why=why)

    # -- between stages ------------------------------------------------------------------------------------------------
    def _next_stage(self, state: RunView, stage: _Stage) -> Generator[d.Decision, None, bool]:
        """Rank the completed stage, prune all but the best, and replan the rest for the promoted trials."""
        index, step = stage.index + 1, self.schedule[stage.index].until_step
        if index == len(self.schedule):
            return False
        paused = [job for job in map(state.jobs.__getitem__, stage.members) if job.status == "paused"]
        paused.sort(key=lambda job: _standing(state.spec, job))
        count = min(self.schedule[index].trials, sum(not _diverged(job) for job in paused))
        promoted, rest = paused[:count], paused[count:]
        among = f"of {len(stage.members)} at step {step}"
        for job in rest:
            yield d.DropJob(job=job.id, why=f"pruned: not in the top {count} {among}")
        if not promoted:
            return False
        left = tuple(replace(round_, trials=min(round_.trials, count)) for round_ in self.schedule[index:])
        cost_model = self.outlook.now(state, promoted)
        plan = self.planner(left, cost_model, self.outlook.left_s(state), state.in_hand)
        summary = self._summary(plan, index)
        for rank, job in enumerate(promoted):
            tags = {**_tags(index, plan), RANK: rank}
            yield d.TagJob(job=job.id, tags=tags, why=f"promoted: ranked {rank + 1} {among}; {summary}")
        stage.begin(index, [job.id for job in promoted])
        return True

    def _summary(self, plan: RubberbandPlan, index: int) -> str:
        first = plan.stages[0]
        return (
            f"stage {index + 1} of {len(self.schedule)}: {first.trials} trials on {first.slots} slots each, "
            f"{first.places} at once on {first.machines} machines; forecast for the rest of the run: "
            f"{show_duration(plan.seconds)} and {show_usd(plan.usd)}"
        )


class _Stage:
    """The current stage and its trials in order, from their tags: a memo, rebuilt whenever it is missing."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        stages: dict[int, list[Job]] = {0: []}
        for job in jobs:
            stages.setdefault(_number(job, STAGE), []).append(job)
        last = max(stages)
        self.begin(last, [job.id for job in sorted(stages[last], key=lambda job: _number(job, RANK))])

    def begin(self, index: int, members: list[JobId]) -> None:
        self.index, self.members, self._sent = index, members, 0

    def next_up(self, state: RunView, until_step: int) -> Job | None:
        """The first trial that was not started in this stage yet."""
        while self._sent < len(self.members):
            job = state.jobs[self.members[self._sent]]
            if job.until_step < until_step and not job.over:
                return job
            self._sent += 1
        return None


def _tags(index: int, plan: RubberbandPlan) -> Tags:
    first, after = plan.stages[0], plan.stages[1:2]
    keep = min(first.machines, after[0].machines) if after else 0
    return {STAGE: index, WIDTH: first.slots, PLACES: first.places, KEEP: keep}


def _number(job: Job, tag: str) -> int:
    return int(job.tags.get(tag) or 0)


def _wanted(state: RunView) -> int:
    return len(state.waiting) + state.count("running")


def _diverged(job: Job) -> bool:
    return len(job.values) > 0 and math.isnan(job.values[-1])


def _standing(spec: RunSpec, job: Job) -> tuple[bool, bool, float, int]:
    """Best first; trials without a report come after all that have one, and before those that diverged."""
    reported = len(job.values) > 0
    value = job.values[-1] if reported else 0.0
    return (math.isnan(value), not reported, spec.rank(value)[1] if reported else 0.0, _number(job, RANK))
