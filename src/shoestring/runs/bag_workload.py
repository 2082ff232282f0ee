"""How simulated jobs of a bag behave: like those that finished in an earlier run, and without any as the user says.

Jobs end by themselves, so what matters is how long all of one takes, and how often it reports on the way.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

from shoestring.errors import SpecError
from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Config, Metrics, Value
from shoestring.kernel.view import RunView
from shoestring.report.study import Study
from shoestring.world.sim.workload import Curve, SublinearSpeed, Workload


def as_run(workload: Workload, spec: RunSpec) -> Workload:
    """As it behaves in a run of this spec: a job of a bag ends by itself, after `max_steps` unless the workload has a
    number of its own."""
    if not spec.until_exit or workload.steps is not None:
        return workload
    return replace(workload, steps=lambda _: spec.max_steps)


def finished_jobs(study: Study) -> list[Job]:
    """Those whose length is known."""
    view = RunView(study.state)
    return [job for job in study.state.jobs.values() if job.status == "finished" and view.paces(job)]


def job_s(study: Study) -> float:
    """How long a job takes on four cores: the median of those that finished."""
    return statistics.median(_on_four_cores_s(study, job) for job in finished_jobs(study))


def recorded_bag(
    study: Study, *, seconds_per_step: float | None = None, checkpoint_gb: float | None = None
) -> Workload:
    """The jobs of an earlier run. Each simulated one takes as long, and reports as often, as is usual there, with the
    metrics that a job with its parameters reported last; where no job saved, none does."""
    done = finished_jobs(study)
    if not done:
        raise SpecError(
            f"no job of {study.name} has finished, so there is nothing to simulate from",
            hint="say how long a job takes: --job-takes 40m",
        )
    steps = max(1, round(statistics.median(job.step for job in done)))
    saved = [job.last_save.size_bytes / 1e9 for job in done if job.last_save is not None]
    reported = {_key(job.config): job.latest for job in done}

    def curve(config: Config) -> Curve:
        metrics: Metrics = reported.get(_key(config), done[0].latest)
        return lambda _: metrics

    return Workload(
        curve=curve,
        seconds_per_step=SublinearSpeed(seconds_per_step or max(1e-3, job_s(study) / steps)),
        checkpoint_gb=checkpoint_gb or (statistics.median(saved) if saved else None),
        steps=lambda _: steps,
    )


def _on_four_cores_s(study: Study, job: Job) -> float:
    """Of a whole job: where it ran in several places, each part by its share of the work, without what was lost."""
    view = RunView(study.state)
    listings = {listing.offer.machine: listing for listing in view.listings.values()}
    as_fast = SublinearSpeed(1.0)
    paces = view.paces(job)
    work_s = [pace.seconds / as_fast(job.config, listings[machine], slots) for (machine, slots), pace in paces.items()]
    return sum(work_s) * view.spec.max_steps / sum(pace.steps for pace in paces.values())


def _key(config: Config) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(config.items()))
