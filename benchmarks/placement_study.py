"""A study of many trials that share the machines of all zones of a recording, each trial with its own work, all with
one deadline.

The trials of a zone queue for its machines. A new trial takes the first free place; when the zone has fewer machines
than places taken, the last ones are preempted. So a study as a whole never holds more machines than were recorded, and
competition between its trials is part of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from benchmarks.placement_fluid import fluid_usd
from benchmarks.placement_traces import TICK_S, Market, Recording
from benchmarks.placement_world import KEPT, Chooser, Job, Task
from shoestring.policies.placement.slack.guarantee import Switching

VIEWS_KEPT = 600


@dataclass(frozen=True, eq=False)
class Study:
    recording: Recording
    start: int
    """Tick."""
    work_s: tuple[float, ...]
    """Of each trial."""
    deadline_s: float
    """For all of them, in whole ticks."""
    switching: Switching

    @property
    def fluid_usd(self) -> float:
        span = slice(self.start, self.start + round(self.deadline_s / TICK_S))
        there = self.recording
        return fluid_usd(there.counts[:, span], there.usd_per_hour[:, span], there.on_demand_usd_per_hour, self.work_s)


@dataclass(frozen=True)
class StudyOutcome:
    usd: float
    missed: int
    """Trials that missed the deadline."""


def play_study(study: Study, make: Callable[[], Chooser]) -> StudyOutcome:
    """Every trial is placed independently, one after another, on the remaining machines."""
    zones = len(study.recording.counts)
    view: Callable[[tuple[int, ...]], Market] = lru_cache(VIEWS_KEPT)(study.recording.market)
    task = Task(view((1,) * zones), study.start, 0.0, study.deadline_s, study.switching)
    trials = [_Trial(Job(replace(task, work_s=work_s)), make(), {}) for work_s in study.work_s]
    queues = _Queues(zones)
    for tick in range(study.start, study.start + round(study.deadline_s / TICK_S)):
        going = [trial for trial in trials if trial.job.finished_s is None]
        for trial in going:
            trial.job.task = replace(trial.job.task, market=view(queues.seen_by(trial)))
            trial.job.lose_what_is_gone(tick)
            queues.update(trial)
        for trial in going:
            trial.job.task = replace(trial.job.task, market=view(queues.seen_by(trial)))
            trial.job.obey(trial.choose(trial.job.look(tick)), tick)
            queues.update(trial)
        for trial in going:
            trial.job.work(tick)
            queues.update(trial)
    in_time = [t.job.finished_s is not None and t.job.finished_s <= study.deadline_s + 1e-6 for t in trials]
    return StudyOutcome(sum(trial.job.usd for trial in trials), in_time.count(False))


@dataclass(slots=True)
class _Trial:
    job: Job
    choose: Chooser
    held: dict[int, int]
    """Its place in the queue of each zone in which it has a machine, granted or pending."""


class _Queues:
    def __init__(self, zones: int) -> None:
        self._taken: list[set[int]] = [set() for _ in range(zones)]

    def seen_by(self, trial: _Trial) -> tuple[int, ...]:
        """The place it has in each zone, or would get."""
        return tuple(trial.held.get(zone) or first_free(taken) for zone, taken in enumerate(self._taken))

    def update(self, trial: _Trial) -> None:
        """Places are taken and released with the machines."""
        job = trial.job
        machines = () if job.finished_s is not None else (job.machine, job.pending)
        zones = {machine.zone for machine in machines if machine is not None and machine.zone != KEPT}
        for zone in trial.held.keys() - zones:
            self._taken[zone].remove(trial.held.pop(zone))
        for zone in zones - trial.held.keys():
            trial.held[zone] = first_free(self._taken[zone])
            self._taken[zone].add(trial.held[zone])


def first_free(taken: set[int]) -> int:
    """Places are counted from 1."""
    return next(place for place in range(1, len(taken) + 2) if place not in taken)
