"""Flex, our elastic search: a model of all curves decides which trials start, which continue, and on how many slots.

The cluster is as large as the budget pays until the deadline. At first every slot explores: new trials, proposed by the
model, are trained for a few steps each; those whose first step takes too long are paused (`flex.slow_trials`). Then the
trials with the best predicted final values continue, fewer and fewer, on more and more slots (`flex.finalists`). A
trial that has reported is only paused or widened right after one of its own reports, so that no partial step is lost.
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
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.search.flex.grace import SCOUT, grace_steps, next_scout
from shoestring.policies.search.flex.narrowing import Narrowing, power_of_two
from shoestring.policies.search.flex.resources import Resources, resources_now
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, SampledConfig, next_config, planned

if TYPE_CHECKING:
    from shoestring.policies.search.flex.freeze_thaw import FreezeThawParameters
    from shoestring.policies.search.flex.model import CurvePosterior

SHAPE, SHARPENED_AT = "model_shape", "sharpened_at"
"""Tags of the first trial: the fitted parameters of the model, and after how many reports."""
INITIAL_KAPPA = 1.0
"""Upper confidence bound of a new trial: standard deviations added at the start, falling to none at the end."""
PAYS_BACK, PAYS_OFF = 3.0, 8.0
"""A trial is moved only after training for so many switching times, and while so many are left."""


@dataclass(frozen=True)
class Flex:
    grace_steps: int = 1
    """Steps a new trial is trained before it is ranked."""
    explore: float = 0.4
    """The share of deadline and budget in which new trials start."""
    startup: int = 10
    """Trials sampled at random before the model proposes any."""
    spot: bool = True
    """May spot machines be rented?"""
    wants: ClassVar[frozenset[Waker]] = frozenset(
        {e.RunStarted, e.JobReported, e.SegmentEnded, e.LeaseGranted, e.LeaseDenied, e.LeaseEnded, e.UserAsked}
    )

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        resources = resources_now(state, spot=self.spot)
        if isinstance(event, e.JobReported):
            job = state.jobs[event.job]
            if job.segment == event.segment and _may_be_changed(state, job):
                yield from self._judge(state, job, resources)
                yield from self._update_model(state)
            if self._explores(state, resources):
                yield from _pause_slow(state)
        yield from self._fill(state, resources)

    # -- running trials --------------------------------------------------------------------------------------------
    def _judge(self, state: RunView, job: Job, resources: Resources) -> Iterator[d.Decision]:
        """It has just reported: does it continue, and on how many slots? A new trial pauses by itself."""
        if job.values and not math.isfinite(job.values[-1]):
            yield d.DropJob(
                job=job.id, why=f"pruned: diverged, {state.spec.metric} is {job.values[-1]} at step {job.step}"
            )
            return
        if job.step >= job.until_step or not job.values or not _saves_checkpoints(state):
            return  # it stops here anyway, or would restart from step 0
        steps = resources.steps(SpeedByWidth.of(state).step_s(job.id, job.slots))
        if steps < 1:
            yield d.PauseJob(job=job.id, why="no further step would end in time: save a checkpoint")
        elif self._is_judged_with_finalists(state, job, resources) and _is_worth_switching(state, job, resources):
            yield from self._narrow_down(state, job, resources, steps)

    def _narrow_down(self, state: RunView, job: Job, resources: Resources, steps: int) -> Iterator[d.Decision]:
        """Pause it for the finalists, or widen it to free slots."""
        chosen = self._finalists(state, resources)
        if job.id not in chosen:
            yield d.PauseJob(job=job.id, why=f"paused: {len(chosen)} others are predicted to end better")
            return
        room = resources.slots - _slots_in_use(state) + job.slots
        width = min(chosen[job.id], _power_of_two(state, room))
        if width <= job.slots:
            return
        left = state.spec.max_steps - job.step
        wider = min(left, resources.steps(SpeedByWidth.of(state).step_s(job.id, width), switching=True))
        if wider > steps:
            why = f"widened: {wider} more steps on {width} slots, only {steps} on {job.slots}"
            yield d.RunJob(job=job.id, until_step=state.spec.max_steps, slots=width, why=why)

    # -- free slots ----------------------------------------------------------------------------------------------
    def _fill(self, state: RunView, resources: Resources) -> Iterator[d.Decision]:
        worker = state.spec.slots
        if resources.slots - _slots_in_use(state) < worker:
            return
        if not self._explores(state, resources) and (chosen := self._finalists(state, resources)):
            yield from self._resume(state, resources, chosen)
            return
        while resources.slots - _slots_in_use(state) >= worker and len(state.jobs) < planned(state.spec):
            if state.leases and resources.steps(SpeedByWidth.of(state).usual_s(worker), switching=True) < 1:
                return
            yield from self._explore(state, resources)

    def _resume(self, state: RunView, resources: Resources, chosen: dict[JobId, int]) -> Iterator[d.Decision]:
        speeds, max_steps = SpeedByWidth.of(state), state.spec.max_steps
        for job_id in list(state.waiting):
            if job_id not in chosen:
                yield d.PauseJob(job=job_id, why=f"paused: {len(chosen)} others are predicted to end better")
        for place, (job_id, slots) in enumerate(chosen.items()):
            job = state.jobs[job_id]
            if job.status != "paused" or job.segment is not None:  # first: most of them run, and counting slots is slow
                continue
            width = min(slots, _power_of_two(state, resources.slots - _slots_in_use(state)))
            if width and resources.steps(speeds.step_s(job_id, width), switching=True) >= 1:
                why = f"resumed: finalist {place + 1} of {len(chosen)} by predicted final value"
                yield d.RunJob(job=job_id, until_step=max_steps, slots=width, why=why)

    def _explore(self, state: RunView, resources: Resources) -> Iterator[d.Decision]:
        """A scout, if one is needed; else a new trial, or one that was ranked too early."""
        spec, grace = state.spec, grace_steps(state, self.grace_steps)
        sent = next_scout(state, min(self.grace_steps, spec.max_steps), self._steps_to_explore(state, resources))
        if sent is not None:
            scout, there = sent
            yield d.TagJob(job=scout.id, tags={SCOUT: there}, why="chosen as a scout")
            yield d.RunJob(
                job=scout.id,
                until_step=there,
                slots=spec.slots,
                why=f"scout: do ranks at step {grace} hold at step {there}?",
            )
            return
        job, number = state.next_job(), len(state.jobs)
        posterior = self._posterior(state) if number >= max(self.startup, len(spec.given)) else None
        if posterior is None:
            sample: SampledConfig | Job = next_config(state, number, job, RANDOM_SAMPLER)
        else:
            sample = self._most_promising(state, posterior, resources, job, grace)
        if isinstance(sample, Job):
            why = f"to step {grace} of {spec.max_steps}, to be ranked again: earlier ranks do not hold"
            yield d.RunJob(job=sample.id, until_step=grace, slots=spec.slots, why=why)
            return
        yield d.AddJob(job=job, config=sample.config, why=f"trial {number + 1}, {sample.origin}")
        yield d.RunJob(
            job=job, until_step=grace, slots=spec.slots, why=f"ranked after {grace} of {spec.max_steps} steps"
        )

    def _most_promising(
        self, state: RunView, posterior: CurvePosterior, resources: Resources, job: JobId, grace: int
    ) -> SampledConfig | Job:
        """The better of the model's proposal for `job` and the best trial that was ranked before the step `grace`."""
        from shoestring.policies.search.flex.proposals import proposed, rejudged

        spec, speeds = state.spec, SpeedByWidth.of(state)
        alone = self.narrowing.most(resources, spec.slots)
        steps = resources.steps(speeds.usual_s(alone), switching=True)
        kappa = INITIAL_KAPPA * (1.0 - resources.progress)
        new = proposed(state, job, posterior, step=min(spec.max_steps, steps), kappa=kappa)
        early = rejudged(state, posterior, speeds, resources, grace=grace, alone=alone, kappa=kappa)
        return new.sample if early is None or early.score <= new.score else early.job

    # -- progress ------------------------------------------------------------------------------------------
    def _explores(self, state: RunView, resources: Resources) -> bool:
        return resources.progress < self.explore and len(state.jobs) < planned(state.spec)

    def _is_judged_with_finalists(self, state: RunView, job: Job, resources: Resources) -> bool:
        """Is it one of the finalists, or still before its first ranking although exploration has ended?"""
        return job.until_step == state.spec.max_steps or not self._explores(state, resources)

    def _steps_to_explore(self, state: RunView, resources: Resources) -> float:
        """How many steps trials of usual speed, each on the slots of one worker, can still train while exploring."""
        worker = state.spec.slots
        explored_s = resources.left_s * (self.explore - resources.progress) / (1.0 - resources.progress)
        return resources.slots // worker * explored_s / SpeedByWidth.of(state).usual_s(worker)

    @property
    def narrowing(self) -> Narrowing:
        return Narrowing(begins=self.explore)

    # -- the model ------------------------------------------------------------------------------------------
    def _finalists(self, state: RunView, resources: Resources) -> dict[JobId, int]:
        from shoestring.policies.search.flex.finalists import finalists

        return finalists(state, self._posterior(state), SpeedByWidth.of(state), resources, self.narrowing)

    def _posterior(self, state: RunView) -> CurvePosterior | None:
        from shoestring.policies.search.flex.model import posterior_now

        return posterior_now(state, _shape(state), grace_steps(state, self.grace_steps))

    def _update_model(self, state: RunView) -> Iterator[d.Decision]:
        from shoestring.policies.search.flex.model import curve_arrays

        first = next(iter(state.jobs.values()))
        reports = curve_arrays(state).reports
        if reports < int(first.tags.get(SHARPENED_AT) or 0) + max(8, len(state.segments)):
            return
        posterior = self._posterior(state)
        if posterior is not None:
            logs = ",".join(f"{log:.4f}" for log in posterior.sharpened().logs)
            tags: Tags = {SHAPE: logs, SHARPENED_AT: reports}
            yield d.TagJob(job=first.id, tags=tags, why=f"model parameters after {reports} reports")


def _shape(state: RunView) -> FreezeThawParameters | None:
    import numpy as np

    from shoestring.policies.search.flex.freeze_thaw import FreezeThawParameters

    logs = next(iter(state.jobs.values())).tags.get(SHAPE) if state.jobs else None
    return FreezeThawParameters(np.array([float(log) for log in logs.split(",")])) if isinstance(logs, str) else None


def _pause_slow(state: RunView) -> Iterator[d.Decision]:
    from shoestring.policies.search.flex.slow_trials import too_slow

    for job in too_slow(state):
        if _may_be_changed(state, job):
            yield d.PauseJob(job=job.id, why="its first step takes far longer than usual: make room for others")


def _may_be_changed(state: RunView, job: Job) -> bool:
    """Is it running, and not stopping already?"""
    if job.status != "running" or job.segment is None:
        return False
    return not state.segments[job.segment].halting and job.segment not in state.draining


def _slots_in_use(state: RunView) -> int:
    """By all trials that wait or run, and by segments that are still draining."""
    taken = sum(state.jobs[job].slots for job in state.waiting)
    for segment in state.segments.values():
        job = state.jobs[segment.job]
        taken += max(segment.slots, job.slots) if job.status == "running" else segment.slots
    return taken


def _is_worth_switching(state: RunView, job: Job, resources: Resources) -> bool:
    """Is a switch worth its cost, both the one that placed it here and the next?"""
    since = state.segments[job.segment].running_since if job.segment is not None else None
    here_s = 0.0 if since is None else state.now - since
    return here_s >= PAYS_BACK * resources.switch_s and resources.left_s > PAYS_OFF * resources.switch_s


def _saves_checkpoints(state: RunView) -> bool:
    """Does the trials' code save checkpoints? Assumed until a trial has stopped and none has a checkpoint."""
    stopped = False
    for job in state.jobs.values():
        if job.checkpoints:
            return True
        stopped = stopped or (job.segment is None and job.step > 0)
    return not stopped


def _power_of_two(state: RunView, slots: int) -> int:
    """The slots of the largest power of two of workers that fits; 0 if not even one fits."""
    workers = slots // state.spec.slots
    return state.spec.slots * power_of_two(workers) if workers > 0 else 0
