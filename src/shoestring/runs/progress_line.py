"""One live line while a run is active: redrawn in place on a terminal, once a minute in a log."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from shoestring.kernel.history import Entry
from shoestring.kernel.state import RunState
from shoestring.kernel.view import RunView
from shoestring.policies.checkpointing.notice_limit import cannot_save_now
from shoestring.report.machine_time import time_so_far
from shoestring.report.waiting import why_nothing_runs
from shoestring.runs.eta import eta_of, held_usd
from shoestring.units import show_duration, show_number, show_text, show_usd

REDRAW_S = 0.2
LOG_EVERY_S = 60.0
"""Where there is no terminal: often enough to see progress, seldom enough not to fill a log."""


def line_of(state: RunState) -> str:
    """31/64 · best 0.083 · $4.10 of $20.00 · 2h10 of 6h · 3 preemptions, 0 steps lost · 81% of paid time trained

    For a bag: 31/300 · about 3h10 left · $4.10 of $20.00, about $9.80 in total · ...
    """
    spec = state.the_spec
    status = state.by_status
    done = len(state.jobs) - status["waiting"] - status["running"]
    eta = eta_of(state) if spec.kind == "bag" else None
    parts = [f"{done}/{max(spec.trials, len(state.jobs))}"]
    if spec.kind == "study" or spec.metric is not None:
        parts.append(f"best {'-' if state.best is None else show_number(state.jobs[state.best].best)}")
    if eta is not None:
        parts.append(f"about {_rounded(eta.left_s)} left")
    money = "free of charge"
    if spec.budget_usd:
        money = f"{show_usd(state.spent_usd + (held_usd(state) or 0.0))} of {show_usd(spec.budget_usd)}"
        if eta is not None and eta.total_usd is not None:
            money += f", about {show_usd(eta.total_usd)} in total"
    parts += [
        money,
        f"{show_duration(max(0.0, state.now - state.started_at))} of {show_duration(spec.deadline_s)}",
        f"{_count(state.revocations, 'preemption')}, {_count(state.lost_steps, 'step')} lost",
    ]
    trained = time_so_far(state).trained_share if spec.budget_usd else None
    if trained is not None:
        parts.append(f"{trained:.0%} of paid time trained")
    if status["failed"]:
        parts.append(f"{status['failed']} failed")
    too_large, too_slow = cannot_save_now(RunView(state))
    if too_large:
        parts.append(f"{too_large} too large to save on a notice")
    if too_slow:
        parts.append(f"{too_slow} with steps too long to save on a notice")
    why = why_nothing_runs(state)
    return show_text(" · ".join([*parts, why] if why else parts))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _rounded(seconds: float) -> str:
    """No more digits than an estimate has: to ten minutes from an hour on, to a minute before."""
    unit_s = 600.0 if seconds >= 3600 else 60.0 if seconds >= 120 else 1.0
    return show_duration(round(seconds / unit_s) * unit_s)


class LiveLine:
    """A watcher of the controller's loop. Costs one comparison per turn between redraws."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._due = 0.0 if self.shown else time.monotonic() + LOG_EVERY_S
        self._drawn = False
        self.state: RunState | None = None
        """As of the last event."""

    @property
    def shown(self) -> bool:
        return self._stream.isatty()

    def __call__(self, state: RunState, entry: Entry) -> None:  # noqa: ARG002
        self.state = state
        now = time.monotonic()
        if now >= self._due:
            self._due = now + (REDRAW_S if self.shown else LOG_EVERY_S)
            self.draw(state)

    def draw(self, state: RunState) -> None:
        if not self.shown:
            self._stream.write(f"{line_of(state)}\n")
            self._stream.flush()
            return
        width = shutil.get_terminal_size().columns
        # Return to the first column and clear: the new line may be shorter than the old one.
        self._stream.write(f"\r\x1b[2K {line_of(state)[: max(10, width - 2)]}")
        self._stream.flush()
        self._drawn = True

    def finish(self, state: RunState) -> None:
        """Leave the last line standing."""
        if self.shown:
            self.draw(state)
        if self._drawn:
            self._stream.write("\n")
            self._stream.flush()
            self._drawn = False
