"""How simulated trials behave: as recorded in an earlier run, or, without one, by a simple guess.

A guess is labelled as one wherever its results are shown: it is good for cost and time, not for the metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from shoestring.errors import SpecError
from shoestring.kernel.events import JobReported
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Config, Metrics
from shoestring.kernel.view import stable_seed
from shoestring.report.study import Study
from shoestring.world.sim.workload import Curve, CurveTable, SublinearSpeed, Workload

GUESSED_STEP_S = 60.0


def recorded(
    study: Study, spec: RunSpec, *, seconds_per_step: float | None = None, checkpoint_gb: float | None = 0.05
) -> Workload:
    """The trials of an earlier run: each simulated one follows the learning curve of the nearest recorded one.

    On a data fraction it follows trials on the nearest recorded fraction, with step times scaled in proportion.
    """
    if (study.spec.space, study.spec.metric) != (spec.space, spec.metric):
        raise SpecError(
            f"{study.name} searched another space or followed another metric than {spec.name}",
            hint="use --like with a run of the same study, or simulate with guessed curves",
        )
    jobs = [job for job in study.state.jobs.values() if len(job.steps)]
    if not jobs:
        raise SpecError(
            f"no trial of {study.name} has reported {spec.metric}, so there is nothing to simulate from",
            hint="let it run longer, or simulate with guessed curves",
        )
    fractions = {job.fraction for job in jobs}

    @cache
    def on(fraction: float) -> Workload:
        nearest = min(fractions, key=lambda known: abs(math.log(known / fraction)))
        like_it = [job for job in jobs if job.fraction == nearest]
        table = CurveTable(
            metric=study.metric,
            points=[spec.space.encode(job.config) for job in like_it],
            curves=[list(zip(job.steps, job.values, strict=True)) for job in like_it],
            encode=spec.space.encode,
        )
        step_s = (
            seconds_per_step * fraction if seconds_per_step else _seconds_per_step(study, nearest) * fraction / nearest
        )
        return Workload(
            curve=table, seconds_per_step=SublinearSpeed(step_s), checkpoint_gb=checkpoint_gb, on_fraction=on
        )

    return on(1.0)


def guessed(spec: RunSpec, *, seconds_per_step: float | None = None, checkpoint_gb: float | None = 0.05) -> Workload:
    """Curves that fall (or rise) towards a level set by the distance of a configuration from a hidden optimum. A job of
    a bag takes as long as the user says, if that is known."""
    step_s = spec.job_takes_s / spec.max_steps if spec.job_takes_s else GUESSED_STEP_S
    goal = [_unit(spec.seed, index) for index in range(spec.space.dimensions)]

    def curve(config: Config) -> Curve:
        level = 0.05 + 0.75 * _distance(spec.space.encode(config), goal)
        return _falling(spec, level)

    speed = SublinearSpeed(seconds_per_step or step_s)
    return Workload(curve=curve, seconds_per_step=speed, checkpoint_gb=checkpoint_gb)


def _falling(spec: RunSpec, level: float) -> Curve:
    metric, pace = spec.metric or "value", 5.0 / spec.max_steps

    def at(step: int) -> Metrics:
        loss = level + (1.0 - level) * math.exp(-pace * step)
        return {metric: loss if spec.direction == "minimize" else 1.0 - loss}

    return at


def _seconds_per_step(study: Study, fraction: float) -> float:
    """The median time between two reports of one segment, by the run's clock, of trials on this data fraction.

    Where each reports only once, the median of their training times.
    """
    jobs = {job.id: job for job in study.state.jobs.values() if job.fraction == fraction}
    last: dict[str, tuple[int, float]] = {}
    paces: list[float] = []
    for entry in study.entries():
        event = entry.event
        if isinstance(event, JobReported) and event.job in jobs:
            step, at = last.get(event.segment, (0, math.nan))
            if event.step > step and not math.isnan(at):
                paces.append((event.at - at) / (event.step - step))
            last[event.segment] = (event.step, event.at)
    paces = paces or [job.seconds_per_step for job in jobs.values() if job.seconds_per_step]
    paces.sort()
    return max(1e-3, paces[len(paces) // 2]) if paces else GUESSED_STEP_S * fraction


def _distance(a: Sequence[float], b: Sequence[float]) -> float:
    return math.sqrt(math.fsum((u - v) ** 2 for u, v in zip(a, b, strict=True)) / max(1, len(a)))


def _unit(seed: int, index: int) -> float:
    return stable_seed("guessed curves", seed, index) / 2**64
