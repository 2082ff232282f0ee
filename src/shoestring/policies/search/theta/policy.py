"""Theta: every trial is trained part of the way, a curve model predicts its final value, and only the best continue."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Settled
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.rungs import HOPELESS, UNREPORTED, Standing
from shoestring.policies.search.samplers.protocol import (
    RANDOM_SAMPLER,
    SEARCH_WAKERS,
    Sampler,
    has_free_slot,
    next_config,
    planned,
)

METRIC = "stage"
STAGES = "stages"


def note_stage(job: Job, event: e.JobReported) -> Iterator[d.Decision]:
    """Record that a new stage began, if one did. Steps that were lost and are trained again count again."""
    stage = event.metrics.get(METRIC)
    if stage is None:
        return
    before = _stages(job)
    stages = [(step, value) for step, value in before if step < event.step]
    if not stages or stages[-1][1] != stage:
        stages.append((event.step, float(stage)))
    if stages[-1][0] == event.step or event.step < before[-1][0]:
        text = " ".join(f"{step}:{value!r}" for step, value in stages)
        yield d.TagJob(job=job.id, tags={STAGES: text}, why=f"stage {stage:g} begins at step {event.step}")


def boundaries(job: Job) -> tuple[int, ...]:
    """The steps at which its stage changed."""
    return tuple(step for step, _ in _stages(job)[1:])


def _stages(job: Job) -> list[tuple[int, float]]:
    pairs = (pair.partition(":") for pair in str(job.tags.get(STAGES) or "").split())
    return [(int(step), float(stage)) for step, _, stage in pairs]


CURVES = ("blend", "ensemble", "earlycurve", "slaq", "last_value")
"""The available curve models (`shoestring.models.curves.registry`), the default first."""
EXPECTED = "expected"
"""Tag: the predicted final value when the trial settled; null if it had reported nothing. A tag, because a prediction
must not change when the curve grows longer or a checkpoint is lost."""
RESTED = "plateau"
"""Tag: the step at which its curve was found to be on a plateau."""

PLATEAU_SHARE, PLATEAU_POINTS = 0.2, 10
"""A plateau must last for this share of max_steps and so many reports."""


@dataclass(frozen=True)
class Theta:
    """All to theta x max_steps; then the top mcnt from their checkpoints.  Paper: SpotTune Alg. 1 l.48-53

    Differs from the paper: a trial that can no longer be among the top mcnt, because as many are predicted to end
    better, is pruned without waiting for the others, so that its checkpoints can be deleted.
    """

    theta: float = 0.7
    mcnt: int = 3
    curve: str = CURVES[0]
    plateau: float = 1e-5
    """A curve that changed by less than this share of its value is on a plateau: its trial stops before theta."""
    sampler: Sampler = RANDOM_SAMPLER
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS | {e.JobReported}

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        if isinstance(event, e.JobReported):
            job = state.jobs[event.job]
            if job.segment == event.segment and job.status == "running" and job.values:
                yield from note_stage(job, event)
                yield from self._watch(state.spec, job)
            return
        arrivals = state.memo(self, Arrivals)
        yield from self._read_on(state, arrivals)
        if arrivals.count >= planned(state.spec):
            yield from self._promote(state, arrivals)
        while has_free_slot(state) and len(state.jobs) < planned(state.spec):
            yield from self._new_trial(state)

    def halt_step(self, spec: RunSpec) -> int:
        return max(1, math.ceil(self.theta * spec.max_steps - 1e-9))

    # -- on the way ------------------------------------------------------------------------------------------------
    def _watch(self, spec: RunSpec, job: Job) -> Iterator[d.Decision]:
        from shoestring.models.curves.facts import diverged, recent_movement

        if diverged(job.values[0], job.best, job.values[-1]):
            yield d.DropJob(
                job=job.id, why=f"pruned: diverged, {spec.metric} is {job.values[-1]:.4g} at step {job.step}"
            )
            return
        if job.step >= self.halt_step(spec) or not job.checkpoints:
            return  # it stops there anyway, or would restart from step 0
        before = bisect_right(job.steps, job.step - PLATEAU_SHARE * spec.max_steps)
        window = max(PLATEAU_POINTS, len(job.steps) - before)
        moved = recent_movement(job.values, window) if before else math.inf
        if moved < self.plateau:
            why = f"on a plateau: {spec.metric} changed by {moved:.1e} of its value in the last {window} reports"
            yield d.TagJob(job=job.id, tags={RESTED: job.step}, why=why)
            yield d.PauseJob(job=job.id, why=why)

    # -- at theta --------------------------------------------------------------------------------------------------
    def _read_on(self, state: RunView, arrivals: Arrivals) -> Iterator[d.Decision]:
        """Rank the trials that settled since, and prune those with mcnt others ahead."""
        settled = state.settled
        while arrivals.read < len(settled):
            order, entry = arrivals.read, settled[arrivals.read]
            job = state.jobs[entry.job]
            if job.status == "paused" and job.segment is not None and job.until_step == entry.until_step:
                return  # paused, and still saving: it is ranked once it has saved
            arrivals.read += 1
            if not self._arrived(state.spec, entry, job):
                continue
            arrivals.count += 1
            standing = yield from self._standing(state.spec, entry, job)
            insort(arrivals.leaders, (standing, order, job.id))
            if len(arrivals.leaders) > self.mcnt or standing == HOPELESS:
                behind = state.jobs[arrivals.leaders.pop()[2]]
                if not behind.over:
                    better = "another trial is" if self.mcnt == 1 else f"{self.mcnt} trials are"
                    yield d.DropJob(
                        job=behind.id, why=f"pruned: {_prediction(behind)}, {better} predicted to end better"
                    )

    def _arrived(self, spec: RunSpec, entry: Settled, job: Job) -> bool:
        if entry.until_step != self.halt_step(spec):
            return False  # one of those that were promoted
        if entry.status != "paused" or entry.step >= entry.until_step:
            return True
        rested = job.tags.get(RESTED)
        return isinstance(rested, int) and entry.step >= rested

    def _standing(self, spec: RunSpec, entry: Settled, job: Job) -> Generator[d.Decision, None, float]:
        """Its predicted final value, smaller is better."""
        if EXPECTED in job.tags:
            value = job.tags[EXPECTED]
        elif job.status == "finished":
            value = entry.value
        elif job.over:
            return HOPELESS
        else:
            value = yield from self._predicted(spec, job)
        if not isinstance(value, float | int):
            return UNREPORTED
        return HOPELESS if math.isnan(value) else spec.rank(value)[1]

    def _predicted(self, spec: RunSpec, job: Job) -> Generator[d.Decision, None, float | None]:
        if not job.values:
            yield d.TagJob(job=job.id, tags={EXPECTED: None}, why="no prediction: it has reported no value")
            return None
        from shoestring.models.curves.registry import curve_model

        model = curve_model(self.curve)
        mean, deviation = model.predict(job.steps, job.values, spec.max_steps, spec.direction, boundaries(job))
        if not math.isfinite(mean):
            return math.nan
        why = f"predicted {spec.metric} at step {spec.max_steps}: {mean:.4g} ± {deviation:.2g}"
        yield d.TagJob(job=job.id, tags={EXPECTED: mean}, why=why)
        return mean

    def _promote(self, state: RunView, arrivals: Arrivals) -> Iterator[d.Decision]:
        spec = state.spec
        for rank, (_, _, job_id) in enumerate(arrivals.leaders, 1):
            job = state.jobs[job_id]
            if job.status == "paused" and job.until_step < spec.max_steps:
                why = f"{_prediction(job)}, ranked {rank} of {arrivals.count}"
                yield d.RunJob(job=job_id, until_step=spec.max_steps, slots=job.slots, why=why)

    def _new_trial(self, state: RunView) -> Iterator[d.Decision]:
        spec, number, job = state.spec, len(state.jobs), state.next_job()
        config, origin = next_config(state, number, job, self.sampler)
        halt = self.halt_step(spec)
        yield d.AddJob(job=job, config=config, why=f"trial {number + 1} of {planned(spec)}, {origin}")
        yield d.RunJob(
            job=job,
            until_step=halt,
            slots=spec.slots,
            why=f"to step {halt} of {spec.max_steps}, where all trials are ranked",
        )


def _prediction(job: Job) -> str:
    expected = job.tags.get(EXPECTED)
    return f"predicted final value {expected:.4g}" if isinstance(expected, float | int) else "no prediction"


class Arrivals:
    """How much of `state.settled` was read, and the resulting ranking: a memo, rebuilt whenever it is missing."""

    def __init__(self) -> None:
        self.read = 0
        self.count = 0
        self.leaders: list[Standing] = []
        """The best mcnt of those that have arrived, best first."""
