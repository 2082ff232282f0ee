"""The trials of a run as a table: one pass over the journal beside the fold, for machines, hours and cost of each.

The cost of a lease is divided among the trials that ran on it, by their slot-seconds. A machine on which nothing ever
ran belongs to no trial, so the trials' costs sum to the receipt's total less the cost of those.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload

from shoestring.errors import need
from shoestring.kernel.background import current_name, task_name
from shoestring.kernel.decisions import StartSegment, Think
from shoestring.kernel.events import LeaseEnded, SegmentEnded
from shoestring.kernel.history import Entry
from shoestring.kernel.records import Job
from shoestring.kernel.state import RunState
from shoestring.kernel.step import replay
from shoestring.kernel.types import Config, JobId, LeaseId, Metrics, SegmentId
from shoestring.policies.search.trimtuner.suggest import suggest
from shoestring.units import show_duration, show_number, show_text, show_usd

SHOWN_IN_NOTEBOOKS = 50
SUGGEST = task_name(suggest)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    number: int
    status: str
    fraction: float
    """The data fraction it trained on."""
    feasible: bool | None
    """Does it satisfy all constraints? None if there are none, or nothing is measured yet."""
    step: int
    value: float
    """The best value of the metric that is not lost; NaN if there is none."""
    config: Config
    machines: tuple[str, ...]
    """Where it ran, in order, without repeats."""
    seconds: float
    cost_usd: float
    revocations: int
    lost_steps: int
    failures: int
    checkpoint: str | None
    """Name of the newest checkpoint in the run's store."""
    detail: str
    metrics: Metrics
    """Its last report, all metrics."""
    attempts: int
    """How often it was started or resumed."""
    segment: SegmentId | None
    """Its latest segment, in whose folder its log is."""

    def to_plain(self) -> dict[str, Any]:
        return {
            "trial": self.number,
            "status": self.status,
            "fraction": self.fraction,
            "feasible": self.feasible,
            "step": self.step,
            "value": None if math.isnan(self.value) else self.value,
            **{f"config.{name}": value for name, value in self.config.items()},
            "machines": " ".join(self.machines),
            "seconds": self.seconds,
            "cost_usd": self.cost_usd,
            "revocations": self.revocations,
            "lost_steps": self.lost_steps,
            "failures": self.failures,
            "checkpoint": self.checkpoint,
            "detail": self.detail,
        }


class Trials(Sequence[TrialRow]):
    """All trials in the order in which they were added."""

    def __init__(self, rows: Iterable[TrialRow], metric: str) -> None:
        self._rows = tuple(rows)
        self.metric = metric

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> TrialRow: ...
    @overload
    def __getitem__(self, index: slice) -> Trials: ...
    def __getitem__(self, index: int | slice) -> TrialRow | Trials:
        return Trials(self._rows[index], self.metric) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[TrialRow]:
        return iter(self._rows)

    def to_plain(self) -> list[dict[str, Any]]:
        """One flat record per trial; all have the same keys, so that they make a table."""
        rows = [row.to_plain() for row in self._rows]
        keys = dict.fromkeys(key for row in rows for key in row)
        if not self._uses_fractions():
            keys.pop("fraction", None)
        if all(row.feasible is None for row in self._rows):
            keys.pop("feasible", None)
        return [{key: row.get(key) for key in keys} for row in rows]

    def to_pandas(self) -> Any:
        """A DataFrame; needs pandas."""
        return need("pandas", extra="tables").DataFrame(self.to_plain())

    def _uses_fractions(self) -> bool:
        """Did any of them train on less than all of the data? Otherwise the column is left out."""
        return any(row.fraction < 1 for row in self._rows)

    def _lines(self, most: int | None = None) -> list[tuple[str, ...]]:
        """The titles, and a line for each trial, at most `most`."""
        lines = [_titles(self.metric), *map(_cells, self._rows[:most])]
        return lines if self._uses_fractions() else [line[:_FRACTION] + line[_FRACTION + 1 :] for line in lines]

    def __repr__(self) -> str:
        return "\n".join("  ".join(cells) for cells in aligned(self._lines()))

    def _repr_html_(self) -> str:
        from html import escape

        titles, *lines = self._lines(SHOWN_IN_NOTEBOOKS)
        head = "".join(f"<th>{escape(title)}</th>" for title in titles)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
        rest = len(self._rows) - SHOWN_IN_NOTEBOOKS
        more = f"<p>and {rest} more: .to_pandas() has them all</p>" if rest > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class Tally:
    """What the fold forgets: which trial used which machine, and for how long."""

    def __init__(self) -> None:
        self.state = RunState()
        self.machines: dict[JobId, dict[str, None]] = {}
        self.seconds: dict[JobId, float] = {}
        self.cost_usd: dict[JobId, float] = {}
        self.attempts: dict[JobId, int] = {}
        self.latest: dict[JobId, SegmentId] = {}
        self.question: Any = None
        """Input of the optimizer's last suggestion, where one searches."""
        self._used: dict[LeaseId, dict[JobId, float]] = {}
        self._open: dict[SegmentId, tuple[float, StartSegment]] = {}
        """When each open segment was started, and with which order."""
        self._open_on: dict[LeaseId, dict[SegmentId, None]] = {}

    def add(self, entry: Entry) -> None:
        """Fold the next entry."""
        replay(self.state, entry)
        self.watch(self.state, entry)

    def watch(self, state: RunState, entry: Entry) -> None:
        """The next entry, which is folded into the state already: a watcher of the controller's loop."""
        self.state = state
        event = entry.event
        if type(event) is SegmentEnded:
            self._close_segment(event.segment, event.at)
        elif type(event) is LeaseEnded:
            self._bill_lease(event)
        for decision in entry.decisions:
            if type(decision) is StartSegment:
                self._open_segment(decision, event.at)
            elif type(decision) is Think and current_name(decision.question) == SUGGEST:
                self.question = decision.given

    def rows(self, first: int = 0, most: int | None = None) -> list[TrialRow]:
        """The trials from number `first` on, at most `most`."""
        last = None if most is None else first + most
        return [self._row(job) for job in islice(self.state.jobs.values(), first, last)]

    def _open_segment(self, order: StartSegment, at: float) -> None:
        self._open[order.segment] = (at, order)
        self.attempts[order.job] = self.attempts.get(order.job, 0) + 1
        self.latest[order.job] = order.segment
        where = self.machines.setdefault(order.job, {})
        for lease in order.leases:
            self._open_on.setdefault(lease, {})[order.segment] = None
            where[str(self.state.leases[lease].offer)] = None

    def _close_segment(self, segment: SegmentId, at: float) -> None:
        if segment not in self._open:
            return
        began, order = self._open.pop(segment)
        seconds = max(0.0, at - began)
        self.seconds[order.job] = self.seconds.get(order.job, 0.0) + seconds
        for lease in order.leases:
            self._open_on[lease].pop(segment)
            used = self._used.setdefault(lease, {})
            used[order.job] = used.get(order.job, 0.0) + seconds * order.slots

    def _bill_lease(self, event: LeaseEnded) -> None:
        for segment in list(self._open_on.get(event.lease, ())):  # LeaseEnded arrived before SegmentEnded
            self._close_segment(segment, event.at)
        self._open_on.pop(event.lease, None)
        used = self._used.pop(event.lease, {})
        total = math.fsum(used.values())
        for job, slot_seconds in used.items():
            share = slot_seconds / total if total > 0 else 1 / len(used)
            self.cost_usd[job] = self.cost_usd.get(job, 0.0) + share * event.charged_usd

    def _row(self, job: Job) -> TrialRow:
        return TrialRow(
            number=job.number,
            status=job.status,
            fraction=job.fraction,
            feasible=job.feasible,
            step=job.step,
            value=job.best,
            config=job.config,
            machines=tuple(self.machines.get(job.id, ())),
            seconds=self.seconds.get(job.id, 0.0),
            cost_usd=self.cost_usd.get(job.id, 0.0),
            revocations=job.revocations,
            lost_steps=job.lost_steps,
            failures=job.failures,
            checkpoint=None if job.checkpoint is None else job.checkpoint.name,
            detail=job.detail,
            metrics=job.latest,
            attempts=self.attempts.get(job.id, 0),
            segment=self.latest.get(job.id),
        )


def _titles(metric: str) -> tuple[str, ...]:
    return ("trial", "status", "data", "step", metric, "configuration", "time", "cost", "preempted")


_FRACTION = _titles("").index("data")


def _cells(row: TrialRow) -> tuple[str, ...]:
    return (
        str(row.number),
        row.status,
        f"{row.fraction:.3g}",
        str(row.step),
        "-" if math.isnan(row.value) else show_number(row.value),
        show_config(row.config),
        show_duration(row.seconds),
        show_usd(row.cost_usd),
        str(row.revocations),
    )


def aligned(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]


def show_config(config: Config) -> str:
    """A configuration on one line: "lr 0.012, width 64"."""
    return ", ".join(
        f"{name} {show_number(value) if isinstance(value, float) else show_text(str(value))}"
        for name, value in config.items()
    )
