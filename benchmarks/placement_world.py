"""A tick world for one job: machines with set-up times, saves, preemptions, and a bill by the second.

Availability changes between ticks. Within a tick everything is exact: a set-up that takes 84 seconds leaves 36 to work.
Moves are make-before-break: the old machine works until the new one is ready to restore.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.placement_traces import TICK_S, Market
from shoestring.policies.placement.slack.guarantee import MachineChoice, Situation, SlackChoice, Switching

KEPT = -1
"""The zone of an on-demand machine."""


@dataclass(frozen=True)
class Task:
    market: Market
    start: int
    """Tick."""
    work_s: float
    deadline_s: float
    switching: Switching
    save_every_s: float = 900.0
    notice_s: float = 120.0
    """Work done by then is saved before the preemption. No policy relies on it: zero is a cloud without notices."""


@dataclass(slots=True)
class Machine:
    zone: int
    provision_s: float
    """Until it can begin to restore."""
    restore_s: float


@dataclass(slots=True)
class Look:
    """What a contestant sees at a tick."""

    tick: int
    task: Task
    now: Situation
    pending: int | None
    """The zone of a pending machine that replaces the current one."""


@dataclass(frozen=True)
class Outcome:
    usd: float
    finished_s: float
    met: bool


Chooser = Callable[[Look], SlackChoice]


def play(task: Task, choose: Chooser) -> Outcome:
    job = Job(task)
    for tick in range(task.start, task.market.ticks):
        job.lose_what_is_gone(tick)
        job.obey(choose(job.look(tick)), tick)
        job.work(tick)
        if job.finished_s is not None:
            return Outcome(job.usd, job.finished_s, job.finished_s <= task.deadline_s + 1e-6)
        if job.passed_s > task.deadline_s:
            return Outcome(job.usd, float("inf"), met=False)
    raise ValueError("the trace ended before the deadline")


class Job:
    """One job under way. Between ticks its task may be replaced by the same one on a market that looks different."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.usd = 0.0
        self.passed_s = 0.0
        self.finished_s: float | None = None
        self.left_s = task.work_s
        self.unsaved_s = 0.0
        self.machine: Machine | None = None
        self.pending: Machine | None = None
        self.saves_s = 0.0
        """Time that a save still takes: no work meanwhile."""

    def look(self, tick: int) -> Look:
        machine = self.machine
        now = Situation(
            time_left_s=self.task.deadline_s - self.passed_s,
            work_left_s=self.left_s,
            unsaved_s=self.unsaved_s,
            here=MachineChoice.WAIT
            if machine is None
            else MachineChoice.ON_DEMAND
            if machine.zone == KEPT
            else MachineChoice.SPOT,
            zone=machine.zone if machine else 0,
            starting=machine is not None and machine.provision_s + machine.restore_s > 0,
        )
        return Look(tick, self.task, now, self.pending.zone if self.pending else None)

    def lose_what_is_gone(self, tick: int) -> None:
        up = self.task.market.up
        if self.pending is not None and self.pending.zone != KEPT and not up[self.pending.zone, tick]:
            self.pending = None
        if self.machine is not None and self.machine.zone != KEPT and not up[self.machine.zone, tick]:
            self.left_s += self.unsaved_s if self.task.notice_s == 0.0 else min(self.unsaved_s, self.task.notice_s)
            self.unsaved_s = self.saves_s = 0.0
            self.machine, self.pending = self.pending, None

    def obey(self, wish: SlackChoice, tick: int) -> None:
        if wish.kind is MachineChoice.SAVE:
            self._save()
        elif wish.kind is MachineChoice.WAIT:
            if self.machine is not None:
                self._save()
                self.usd += self.saves_s / 3600 * self._price(self.machine.zone, tick)
            self.machine = self.pending = None
            self.saves_s = 0.0
        else:
            zone = KEPT if wish.kind is MachineChoice.ON_DEMAND else wish.zone
            if self.machine is None:
                self.machine = self._asked_for(zone)
            elif self.machine.zone == zone:
                self.pending = None
            elif self.pending is None or self.pending.zone != zone:
                self.pending = self._asked_for(zone)

    def work(self, tick: int) -> None:
        """One tick, cut where a new machine takes over."""
        rest_s = TICK_S
        if self.pending is not None:
            worked = min(rest_s, self.pending.provision_s)
            self.usd += rest_s / 3600 * self._price(self.pending.zone, tick)
            self._stretch(worked, tick)
            self.pending.provision_s -= worked
            rest_s -= worked
            if self.finished_s is not None or self.pending.provision_s > 0:
                return
            self._save()
            self.pending.restore_s += self.saves_s
            self.usd += self.saves_s / 3600 * self._price(self.machine.zone, tick) if self.machine else 0.0
            self.saves_s = 0.0
            self.machine, self.pending = self.pending, None
            self._stretch(rest_s, tick, paid=True)
        else:
            self._stretch(rest_s, tick)

    def _stretch(self, seconds: float, tick: int, *, paid: bool = False) -> None:
        machine = self.machine
        used = seconds
        if machine is not None:
            for phase in ("provision_s", "restore_s"):
                taken = min(seconds, getattr(machine, phase))
                setattr(machine, phase, getattr(machine, phase) - taken)
                seconds -= taken
            taken = min(seconds, self.saves_s)
            self.saves_s -= taken
            seconds -= taken
            worked = min(seconds, self.left_s)
            self.left_s -= worked
            self.unsaved_s += worked
            if self.left_s <= 1e-9:
                used -= seconds - worked
                self.finished_s = self.passed_s + used
            elif machine.zone != KEPT and self.unsaved_s >= self.task.save_every_s:  # nobody takes the others away
                self._save()
            if not paid:
                self.usd += used / 3600 * self._price(machine.zone, tick)
        self.passed_s += used

    def _save(self) -> None:
        if self.unsaved_s > 0:
            self.unsaved_s = 0.0
            self.saves_s += self.task.switching.save_s

    def _asked_for(self, zone: int) -> Machine:
        switching = self.task.switching
        return Machine(zone, switching.setup_s - switching.restore_s, switching.restore_s)

    def _price(self, zone: int, tick: int) -> float:
        market = self.task.market
        return market.on_demand_usd_per_hour if zone == KEPT else float(market.usd_per_hour[zone, tick])
