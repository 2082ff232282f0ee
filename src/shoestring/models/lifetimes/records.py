"""Observed machine lifetimes: what lifetime models are fitted to, and the CSV file they are read from.

A machine that was not preempted (its user stopped it, or it is still running) is censored: its lifetime is AT LEAST so
long. Leaving those out, or counting their ends as deaths, makes every machine look shorter-lived than it is.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoestring.errors import DataError
from shoestring.models.lifetimes.model import HOUR_S, Floats
from shoestring.units import show_duration

LEAST_S = 1.0
"""Shorter lifetimes count as this: no clock here is finer, and at age 0 some densities are infinite."""
GOOGLE_2019 = {"vm_type", "zone", "launch_requested_utc", "lifetime_s", "preempted", "end_event"}
"""The columns by which the published lifetimes of Google's preemptible machines are known."""
GOOGLE_LIMIT_S = 24 * HOUR_S

COLUMNS: dict[str, tuple[str, ...]] = {
    "lifetime": ("lifetime_s",),
    "taken": ("taken", "preempted", "revoked"),
    "machine": ("machine", "vm_type", "instance_type"),
    "zone": ("zone", "availability_zone", "az"),
    "launch": ("launched_at", "launch_requested_utc"),
    "limit": ("limit_s",),
}
_REQUIRED = ("lifetime", "taken")
_YES, _NO = {"true", "yes", "1", "t", "y"}, {"false", "no", "0", "f", "n"}


class LifetimeRecord(NamedTuple):
    """One machine."""

    seconds: float
    revoked: bool
    machine: str = ""
    zone: str = ""
    launched_at: float = math.nan
    """UTC seconds; NaN if not recorded. The time of the END is never used: it would give the answer away."""
    limit_s: float | None = None


@dataclass(frozen=True, eq=False)
class LifetimeRecords:
    """Many machines, each a row, under one limit."""

    seconds: Floats
    revoked: NDArray[np.bool_]
    machine: tuple[str, ...]
    zone: tuple[str, ...]
    launched_at: Floats
    limit_s: float | None

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def at_limit(self) -> NDArray[np.bool_]:
        """Preempted at the limit: providers need some minutes, so all preempted later than it count."""
        return self.revoked & (self.seconds >= (math.inf if self.limit_s is None else self.limit_s))

    @property
    def by_chance(self) -> NDArray[np.bool_]:
        """Preempted before the limit."""
        return self.revoked & ~self.at_limit

    def pick(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> LifetimeRecords:
        rows = np.arange(len(self))[which]
        return replace(
            self,
            seconds=self.seconds[rows],
            revoked=self.revoked[rows],
            machine=tuple(self.machine[row] for row in rows),
            zone=tuple(self.zone[row] for row in rows),
            launched_at=self.launched_at[rows],
        )

    @staticmethod
    def of(
        records: Iterable[LifetimeRecord], limit_s: float | None = None, source: str = "the records"
    ) -> LifetimeRecords:
        """`limit_s` holds for all; without it, the records' own limits must agree."""
        rows = list(records)
        if not rows:
            raise DataError(f"{source}: no machine matches", hint="check --machines and --zones")
        limits = {row.limit_s for row in rows} if limit_s is None else {limit_s}
        if len(limits) > 1:
            listed = ", ".join(sorted("none" if limit is None else show_duration(limit) for limit in limits))
            raise DataError(
                f"{source}: machines under different limits ({listed}) cannot share a model",
                hint="select some with --machines or --zones, or give one limit for all with --limit",
            )
        return LifetimeRecords(
            seconds=np.maximum([row.seconds for row in rows], LEAST_S),
            revoked=np.array([row.revoked for row in rows], dtype=np.bool_),
            machine=tuple(row.machine for row in rows),
            zone=tuple(row.zone for row in rows),
            launched_at=np.array([row.launched_at for row in rows], dtype=np.float64),
            limit_s=limits.pop(),
        )


def read_lifetimes(
    path: Path,
    *,
    limit_s: float | None = None,
    machines: Collection[str] | None = None,
    zones: Collection[str] | None = None,
) -> LifetimeRecords:
    """The machines of a CSV file (.csv or .csv.gz); `machines` and `zones` select some."""
    return LifetimeRecords.of(select(read_records(path), machines, zones), limit_s, str(path))


def select(
    records: Iterable[LifetimeRecord], machines: Collection[str] | None, zones: Collection[str] | None
) -> Iterator[LifetimeRecord]:
    for record in records:
        if (machines is None or record.machine in machines) and (zones is None or record.zone in zones):
            yield record


def read_records(path: Path) -> list[LifetimeRecord]:
    """Raises DataError, with the line, for a row that is not a machine's lifetime."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        titles = [title.strip() for title in next(lines, [])]
        place = _places(titles, path)
        default_s = GOOGLE_LIMIT_S if set(titles) >= GOOGLE_2019 else None
        return [_record(line, place, default_s, f"{path}, line {lines.line_num}") for line in lines if any(line)]
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file", hint="check the path of the lifetimes") from None
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}", hint="lifetimes are a CSV file, plain or .gz") from error


def _places(titles: Sequence[str], path: Path) -> dict[str, int]:
    """Which column holds what."""
    place = {
        what: next((titles.index(name) for name in names if name in titles), -1) for what, names in COLUMNS.items()
    }
    for what in _REQUIRED:
        if place[what] < 0:
            raise DataError(
                f"{path} has no column {' or '.join(map(repr, COLUMNS[what]))}",
                hint="columns: lifetime_s,taken and, where known, machine,zone,launched_at,limit_s",
            )
    return place


def _record(line: Sequence[str], place: dict[str, int], limit_s: float | None, where: str) -> LifetimeRecord:
    def cell(what: str) -> str:
        at = place[what]
        return line[at].strip() if 0 <= at < len(line) else ""

    return LifetimeRecord(
        seconds=_seconds(cell("lifetime"), "a lifetime", where),
        revoked=_truth(cell("taken"), where),
        machine=cell("machine"),
        zone=cell("zone"),
        launched_at=_moment(cell("launch"), where),
        limit_s=_limit(cell("limit"), where) if cell("limit") else limit_s,
    )


def _seconds(text: str, what: str, where: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds < math.inf:
        raise DataError(f"{where}: {text!r} is not {what} in seconds", hint="give a number of 0 or more")
    return seconds


def _limit(text: str, where: str) -> float:
    seconds = _seconds(text, "a limit", where)
    if seconds == 0.0:
        raise DataError(f"{where}: a limit of 0 leaves no lifetime", hint="leave limit_s empty where there is no limit")
    return seconds


def _truth(text: str, where: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise DataError(f"{where}: {text!r} does not say whether the machine was preempted", hint="write true or false")
    return text.lower() in _YES


def _moment(text: str, where: str) -> float:
    """UTC unless the text has an offset; NaN for an empty text."""
    if not text:
        return math.nan
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise DataError(f"{where}: {text!r} is not a time", hint="write it as 2019-02-18T16:57:37") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
