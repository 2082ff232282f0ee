"""Records what every settled trial cost and whether it satisfies the constraints of the run.

Part of every recipe of a run that has constraints or fractions: the best trial of a run satisfies all constraints,
whatever the search. It runs before the search, which finds the verdict on the trials it learns from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.constraints.trial_cost import TrialCost, cost_so_far
from shoestring.space.constraints import COST, SECONDS, Constraint
from shoestring.units import show_duration, show_usd

ENDED = "ended_at_a_limit"
"""Tag of a trial that was pruned when it violated a constraint, and judged at that moment."""


@dataclass(frozen=True)
class JudgeTrials:
    wants: ClassVar[frozenset[Waker]] = frozenset({e.SegmentEnded, e.LeaseEnded, d.PauseJob, d.DropJob})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        for job_id in state.memo(self, _Rested).since_last(state):
            verdict = verdict_on(state, state.jobs[job_id])
            if verdict is not None:
                yield verdict


class _Rested:
    """How far `state.settled` was read. If lost, all are checked again, and those with a verdict are skipped."""

    def __init__(self) -> None:
        self._read = 0
        self._leaving: list[JobId] = []
        """Settled by status, while their last segment is still draining."""

    def since_last(self, state: RunView) -> list[JobId]:
        fresh = dict.fromkeys([*self._leaving, *(rest.job for rest in state.settled[self._read :])])
        self._read = len(state.settled)
        self._leaving = [job for job in fresh if state.jobs[job].segment is not None and not state.jobs[job].wanted]
        return [job for job in fresh if state.jobs[job].segment is None]


def verdict_on(state: RunView, job: Job) -> d.JudgeJob | None:
    """None if it runs again, or if nothing has changed since the last verdict."""
    if job.wanted or ENDED in job.tags:
        return None
    spent = cost_so_far(state, job)
    seconds = None if spent is None else spent.seconds
    judged = bool(state.spec.constraints) and job.fraction == 1.0
    if seconds == job.seconds and (job.feasible is not None or not judged):
        return None
    broken = list(_broken(state.spec.constraints, job, spent)) if judged else []
    length = "its training was not measured"
    if spent is not None:
        length = f"{show_duration(spent.seconds)} of training, {show_usd(spent.usd)}"
    return d.JudgeJob(
        job=job.id,
        seconds=seconds,
        usd=None if spent is None else spent.usd,
        feasible=not broken if judged else None,
        why="; ".join([length, *(broken or (["satisfies every constraint"] if judged else []))]),
    )


def measured(job: Job, seconds: float | None, usd: float | None) -> Mapping[str, float]:
    """All values of a trial that a constraint can use: what it reported last, and the measured time and cost."""
    reported = {name: value for name, value in job.latest.items() if name not in (SECONDS, COST)}
    floor = {SECONDS: seconds, COST: usd}
    return {**reported, **{name: value for name, value in floor.items() if value is not None}}


def _broken(constraints: tuple[Constraint, ...], job: Job, spent: TrialCost | None) -> Iterator[str]:
    """Each constraint that is not known to be satisfied, and why not, for people."""
    values = measured(job, *(spent or (None, None)))
    for constraint in constraints:
        value = values.get(constraint.metric)
        if value is None:
            known = "measured" if constraint.metric in (SECONDS, COST) else "reported"
            yield f"{constraint} cannot be checked: {constraint.metric} was not {known}"
        elif not constraint.holds(value):
            yield f"violates {constraint} with {constraint.show(value)}"
