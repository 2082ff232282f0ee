"""Stages of training, as the trial tells them: `trial.report(loss=..., stage=learning_rate)`.

A learning rate that falls in steps makes a curve fall anew at each, by another law. A trial that knows its schedule
reports it as the metric `stage`; whenever that number changes, the step is a boundary, and curve models fit what came
after it. The boundaries are a tag of the trial, "1:0.1 50:0.01": from step 1 on 0.1, from step 50 on 0.01.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Job

METRIC = "stage"
STAGES = "stages"


def note_stage(job: Job, event: e.JobReported) -> Iterator[d.Decision]:
    """Keep in mind that a new stage began, if one did. Steps that were lost and are trained again count again."""
    stage = event.metrics.get(METRIC)
    if stage is None:
        return
    before = _stages(job)
    stages = [(step, told) for step, told in before if step < event.step]
    if not stages or stages[-1][1] != stage:
        stages.append((event.step, float(stage)))
    if stages[-1][0] == event.step or event.step < before[-1][0]:
        told = " ".join(f"{step}:{value!r}" for step, value in stages)
        yield d.TagJob(job=job.id, tags={STAGES: told}, why=f"at step {event.step} its stage is {stage:g}")


def boundaries(job: Job) -> tuple[int, ...]:
    """The steps at which its stage changed."""
    return tuple(step for step, _ in _stages(job)[1:])


def _stages(job: Job) -> list[tuple[int, float]]:
    pairs = (pair.partition(":") for pair in str(job.tags.get(STAGES) or "").split())
    return [(int(step), float(stage)) for step, _, stage in pairs]
