"""Flex, our elastic search: a model of all curves decides what is begun, who goes on, and on how many slots.

A steady cluster, as large as the money pays to the end. At first every slot explores: new trials, drawn from the model,
trained for a few steps each; those whose first step takes too long make room for others (`flex_paces`). Then the best
of them go on, fewer and fewer, wider and wider, whoever the model expects most of at the end (`flex_finalists`). Those
that have reported are only ever paused or widened in answer to a report of theirs: there, no step under way is lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId, Tags
from shoestring.kernel.view import RunView
from shoestring.policies.search.elastic.scaling import learned_speeds
from shoestring.policies.search.flex.grace import SCOUT, grace_steps, next_scout
from shoestring.policies.search.flex.narrowing import Narrowing, power_of_two
from shoestring.policies.search.flex.resources import Resources, resources_now
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, Drawn, planned, supplied

if TYPE_CHECKING:
    from shoestring.policies.search.flex.freeze_thaw import FreezeThawParameters
    from shoestring.policies.search.flex.model import CurvePosterior

SHAPE, SHARPENED_AT = "model_shape", "sharpened_at"
"""Tags of the first trial: what the model has learned of the parameters, and after how many reports."""
CURIOSITY = 1.0
"""How many deviations of hope count for a new trial at the beginning; none at the end."""
PAYS_BACK, PAYS_OFF = 3.0, 8.0
"""A trial is moved only after it was trained for so many times what a change costs, and while so much time is left."""


@dataclass(frozen=True)
class Flex:
    grace_steps: int = 1
    """What a new trial is trained before it is judged."""
    explore: float = 0.4
    """The share of time and money in which new trials are begun."""
    startup: int = 10
    """Trials drawn at random before the model is asked."""
    spot: bool = True
    """May machines be rented that can be taken away?"""
    wants: ClassVar[frozenset[Waker]] = frozenset(
        {e.RunStarted, e.JobReported, e.SegmentEnded, e.LeaseGranted, e.LeaseDenied, e.LeaseEnded, e.UserAsked}
    )

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        resources = resources_now(state, spot=self.spot)
        if isinstance(event, e.JobReported):
            job = state.jobs[event.job]
            if job.segment == event.segment and _may_be_told(state, job):
                yield from self._judge(state, job, resources)
                yield from self._sharpen(state)
            if self._explores(state, resources):
                yield from _give_up_slow(state)
        yield from self._fill(state, resources)

    # -- who is running --------------------------------------------------------------------------------------------
    def _judge(self, state: RunView, job: Job, resources: Resources) -> Iterator[d.Decision]:
        """It has just reported: does it go on, and as wide as it is? A new trial stops by itself where it is judged."""
        if job.values and not math.isfinite(job.values[-1]):
            yield d.DropJob(job=job.id, why=f"its metric at step {job.step} is {job.values[-1]}")
            return
        if job.step >= job.until_step or not job.values or not _saves(state):
            return  # it stops here anyway, or would begin anew
        speeds = learned_speeds(state)
        steps = resources.steps(speeds.step_s(job.id) / speeds.speedup(job.slots))
        if steps < 1:
            yield d.PauseJob(job=job.id, why="no further step would end in time: save what there is")
        elif self._is_judged_with_finalists(state, job, resources) and _pays(state, job, resources):
            yield from self._narrow_down(state, job, resources, steps)

    def _narrow_down(self, state: RunView, job: Job, resources: Resources, steps: int) -> Iterator[d.Decision]:
        """Make room for others, or take the room that others made."""
        chosen = self._finalists(state, resources)
        if job.id not in chosen:
            yield d.PauseJob(job=job.id, why=f"{len(chosen)} others are expected to end better")
            return
        room = resources.slots - _slots_taken(state) + job.slots
        width = min(chosen[job.id], _power_of_two(state, room))
        if width <= job.slots:
            return
        speeds, left = learned_speeds(state), state.spec.max_steps - job.step
        wider = min(left, resources.steps(speeds.step_s(job.id) / speeds.speedup(width), switching=True))
        if wider > steps:
            why = f"{wider} more steps on {width} slots, {steps} on {job.slots}"
            yield d.RunJob(job=job.id, until_step=state.spec.max_steps, slots=width, why=why)

    # -- what is free ----------------------------------------------------------------------------------------------
    def _fill(self, state: RunView, resources: Resources) -> Iterator[d.Decision]:
        worker = state.spec.slots
        if resources.slots - _slots_taken(state) < worker:
            return
        if not self._explores(state, resources) and (chosen := self._finalists(state, resources)):
            yield from self._resume(state, resources, chosen)
            return
        while resources.slots - _slots_taken(state) >= worker and len(state.jobs) < planned(state.spec):
            if state.leases and resources.steps(learned_speeds(state).usual_s, switching=True) < 1:
                return
            yield from self._explore(state, resources)

    def _resume(self, state: RunView, resources: Resources, chosen: dict[JobId, int]) -> Iterator[d.Decision]:
        speeds, max_steps = learned_speeds(state), state.spec.max_steps
        for job_id in list(state.waiting):
            if job_id not in chosen:
                yield d.PauseJob(job=job_id, why=f"{len(chosen)} others are expected to end better")
        for place, (job_id, slots) in enumerate(chosen.items()):
            job = state.jobs[job_id]
            width = min(slots, _power_of_two(state, resources.slots - _slots_taken(state)))
            if job.status != "paused" or job.segment is not None or not width:
                continue
            if resources.steps(speeds.step_s(job_id) / speeds.speedup(width), switching=True) >= 1:
                why = f"number {place + 1} of {len(chosen)} by its outlook"
                yield d.RunJob(job=job_id, until_step=max_steps, slots=width, why=why)

    def _explore(self, state: RunView, resources: Resources) -> Iterator[d.Decision]:
        """A scout, if one is wanted; or else a new trial, or one that was judged too early."""
        spec, grace = state.spec, grace_steps(state, self.grace_steps)
        sent = next_scout(state, min(self.grace_steps, spec.max_steps), self._steps_to_explore(state, resources))
        if sent is not None:
            scout, there = sent
            yield d.TagJob(job=scout.id, tags={SCOUT: there}, why="a scout")
            yield d.RunJob(
                job=scout.id, until_step=there, slots=spec.slots, why=f"are ranks at {grace} those at {there}?"
            )
            return
        job, number = state.next_job(), len(state.jobs)
        belief = self._belief(state) if number >= max(self.startup, len(spec.given)) else None
        if belief is None:
            drawn: Drawn | Job = supplied(state, number, job, RANDOM_SAMPLER)
        else:
            drawn = self._most_promising(state, belief, resources, job, grace)
        if isinstance(drawn, Job):
            why = f"judged again after {grace} of {spec.max_steps} steps: before, ranks do not hold"
            yield d.RunJob(job=drawn.id, until_step=grace, slots=spec.slots, why=why)
            return
        yield d.AddJob(job=job, config=drawn.config, why=f"trial {number + 1}, {drawn.origin}")
        yield d.RunJob(
            job=job, until_step=grace, slots=spec.slots, why=f"judged after {grace} of {spec.max_steps} steps"
        )

    def _most_promising(
        self, state: RunView, belief: CurvePosterior, resources: Resources, job: JobId, grace: int
    ) -> Drawn | Job:
        """Of what the model would draw for `job` and the trials that were judged before the step `grace`."""
        from shoestring.policies.search.flex.proposals import proposed, rejudged

        spec, speeds = state.spec, learned_speeds(state)
        alone = self.narrowing.most(resources, spec.slots)
        steps = resources.steps(speeds.usual_s / speeds.speedup(alone), switching=True)
        hope = CURIOSITY * (1.0 - resources.progress)
        new = proposed(state, job, belief, step=min(spec.max_steps, steps), hope=hope)
        early = rejudged(state, belief, speeds, resources, grace=grace, alone=alone, hope=hope)
        return new.drawn if early is None or early.score <= new.score else early.job

    # -- how far it is ------------------------------------------------------------------------------------------
    def _explores(self, state: RunView, resources: Resources) -> bool:
        return resources.progress < self.explore and len(state.jobs) < planned(state.spec)

    def _is_judged_with_finalists(self, state: RunView, job: Job, resources: Resources) -> bool:
        """Is it one of the finalists, or still on its way to where it was to be judged though exploring has ended?"""
        return job.until_step == state.spec.max_steps or not self._explores(state, resources)

    def _steps_to_explore(self, state: RunView, resources: Resources) -> float:
        """How many can still be taken by usual trials, each on the slots of one worker, while exploring."""
        explored_s = resources.left_s * (self.explore - resources.progress) / (1.0 - resources.progress)
        return resources.slots // state.spec.slots * explored_s / learned_speeds(state).usual_s

    @property
    def narrowing(self) -> Narrowing:
        return Narrowing(begins=self.explore)

    # -- what is believed ------------------------------------------------------------------------------------------
    def _finalists(self, state: RunView, resources: Resources) -> dict[JobId, int]:
        from shoestring.policies.search.flex.finalists import finalists

        return finalists(state, self._belief(state), learned_speeds(state), resources, self.narrowing)

    def _belief(self, state: RunView) -> CurvePosterior | None:
        from shoestring.policies.search.flex.model import believed

        return believed(state, _shape(state), grace_steps(state, self.grace_steps))

    def _sharpen(self, state: RunView) -> Iterator[d.Decision]:
        from shoestring.policies.search.flex.model import ledger_of

        first = next(iter(state.jobs.values()))
        reports = ledger_of(state).reports
        if reports < int(first.tags.get(SHARPENED_AT) or 0) + max(8, len(state.segments)):
            return
        belief = self._belief(state)
        if belief is not None:
            logs = ",".join(f"{log:.4f}" for log in belief.sharpened().logs)
            tags: Tags = {SHAPE: logs, SHARPENED_AT: reports}
            yield d.TagJob(job=first.id, tags=tags, why=f"the model after {reports} reports")


def _shape(state: RunView) -> FreezeThawParameters | None:
    import numpy as np

    from shoestring.policies.search.flex.freeze_thaw import FreezeThawParameters

    logs = next(iter(state.jobs.values())).tags.get(SHAPE) if state.jobs else None
    return FreezeThawParameters(np.array([float(log) for log in logs.split(",")])) if isinstance(logs, str) else None


def _give_up_slow(state: RunView) -> Iterator[d.Decision]:
    from shoestring.policies.search.flex.slow_trials import too_slow

    for job in too_slow(state):
        if _may_be_told(state, job):
            yield d.PauseJob(job=job.id, why="its first step takes far longer than those of others: make room for them")


def _may_be_told(state: RunView, job: Job) -> bool:
    """Is it running, and not on its way out already?"""
    if job.status != "running" or job.segment is None:
        return False
    return not state.segments[job.segment].halting and job.segment not in state.draining


def _slots_taken(state: RunView) -> int:
    """By all that is wanted, and by what is still leaving."""
    taken = sum(state.jobs[job].slots for job in state.waiting)
    for segment in state.segments.values():
        job = state.jobs[segment.job]
        taken += max(segment.slots, job.slots) if job.status == "running" else segment.slots
    return taken


def _pays(state: RunView, job: Job, resources: Resources) -> bool:
    """Is a change worth what it costs, both the one that put it here and the next?"""
    since = state.segments[job.segment].running_since if job.segment is not None else None
    here_s = 0.0 if since is None else state.now - since
    return here_s >= PAYS_BACK * resources.switch_s and resources.left_s > PAYS_OFF * resources.switch_s


def _saves(state: RunView) -> bool:
    """Does the trials' code save? Taken for granted until one rests without a checkpoint and none has any."""
    resting = False
    for job in state.jobs.values():
        if job.checkpoints:
            return True
        resting = resting or (job.segment is None and job.step > 0)
    return not resting


def _power_of_two(state: RunView, slots: int) -> int:
    """The largest width of a power of two of workers within so many slots; 0 if not even one fits."""
    workers = slots // state.spec.slots
    return state.spec.slots * power_of_two(workers) if workers > 0 else 0
