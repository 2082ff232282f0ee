"""When a segment must save and stop, and when it is killed: decided by the supervisor alone, by the clock of the run.

Three things force a segment to end: its lease (prepaid time over, machine preempted, or a halt that was not obeyed),
its own time limit, and a controller without a heartbeat for `deadman_s`, after which no process would collect the
results and the machine is released.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from shoestring.kernel.types import SegmentCause
from shoestring.worker.heartbeat import Heartbeat
from shoestring.worker.task import Control, Task


class Verdict(NamedTuple):
    order: Literal["continue", "leave", "kill"]
    cause: SegmentCause = "halted"
    detail: str = ""
    gives_back: bool = False


CONTINUE = Verdict("continue")


class SegmentLimits:
    """The time limits of one segment."""

    def __init__(self, task: Task, started: float) -> None:
        self._limit_at = None if task.time_limit_s is None else started + task.time_limit_s
        self._limit_s = task.time_limit_s or 0.0
        self._heartbeat = Heartbeat(task.heartbeat)
        self._deadman_s = task.deadman_s
        self._silence_s = 0.0

    def verdict(self, now: float, control: Control) -> Verdict:
        if now >= control.kill_at():
            return Verdict("kill", "lost", _why_killed(control, now))
        if self._limit_at is not None and now >= self._limit_at:
            return Verdict("kill", "overran", f"still running after its time limit of {self._limit_s:.3g} s")
        self._silence_s = silence = self._heartbeat.silence_s()
        if silence >= 2 * self._deadman_s:
            return Verdict("kill", "lost", f"no controller for {silence:.0f} s, and it did not stop", gives_back=True)
        if silence >= self._deadman_s:
            return Verdict("leave", detail=f"no controller for {silence:.0f} s: released the machine", gives_back=True)
        return Verdict("leave") if now >= control.leave_at() else CONTINUE

    def quiet_s(self, now: float, control: Control) -> float:
        """For how long the verdict cannot change, with the same control file and heartbeat."""
        moments = [control.kill_at(), control.leave_at(), now + self._deadman_s - self._silence_s]
        if self._limit_at is not None:
            moments.append(self._limit_at)
        return min((moment - now for moment in moments if moment > now), default=60.0)


def _why_killed(control: Control, now: float) -> str:
    if control.gone_at is not None and now >= control.gone_at:
        return "the machine was preempted"
    if now >= control.end_by:
        return "the machine's prepaid time was over"
    return "did not stop within its grace period"
