"""How long machines take to come up, and trials to start, to restore a checkpoint and to save one.

A guess, until the run has measured it.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.kernel.records import Timing
from shoestring.kernel.view import RunView

PROVISION_S = 90.0
START_S = 20.0
SAVE_S = 5.0


@dataclass(frozen=True)
class MeasuredLatencies:
    provision_s: float = PROVISION_S
    """From the request of a machine to its grant."""
    start_s: float = START_S
    """From StartSegment until the trial's code runs."""
    restore_s: float = START_S + SAVE_S
    """The same from a checkpoint. Reading one is assumed to take as long as writing it."""
    save_s: float = SAVE_S

    @property
    def restart_s(self) -> float:
        """From the loss of a machine until the trial runs on another."""
        return self.provision_s + self.restore_s


def learned_latencies(view: RunView) -> MeasuredLatencies:
    """Means of all that were measured so far."""
    timings = view.timings
    start_s = _mean(timings["start"], START_S)
    save_s = _mean(timings["save"], SAVE_S)
    return MeasuredLatencies(
        provision_s=_mean(timings["provision"], min(PROVISION_S, view.spec.deadline_s / 10)),
        start_s=start_s,
        restore_s=_mean(timings["restore"], start_s + save_s),
        save_s=save_s,
    )


def slowest_latencies(view: RunView) -> MeasuredLatencies:
    """The longest of each, 0 for what was never measured: for a rule that must hold."""
    timings = view.timings
    return MeasuredLatencies(
        provision_s=timings["provision"].longest_s,
        start_s=timings["start"].longest_s,
        restore_s=timings["restore"].longest_s,
        save_s=timings["save"].longest_s,
    )


def _mean(timing: Timing, guess_s: float) -> float:
    return timing.seconds / timing.count if timing.count else guess_s
