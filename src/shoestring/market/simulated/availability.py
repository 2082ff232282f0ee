"""Availability traces: how many machines of an offer were available, from when to when.

An offer without a trace is not limited. One with a trace has no machines before and after it, because nothing was
observed there.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path

from shoestring.errors import DataError, need
from shoestring.kernel.types import LeaseId, Offer
from shoestring.market.simulated.random_streams import uniform

Run = tuple[float, float, int]
"""Start, end, how many were available."""


class Availability:
    """Machines are revoked when the number available falls. Also whether a request finds any.

    The trace counts all machines, not ours: each lease has a random place among the machines that were there when it
    was granted, and is revoked when the count falls below its place. With a trace of one machine that is simply the end
    of availability.
    """

    def __init__(self, runs: Mapping[Offer, Sequence[Run]], *, seed: int = 0) -> None:
        self._seed = seed
        self._changes = {offer: _changes(offer, sorted(offer_runs)) for offer, offer_runs in runs.items()}

    def available(self, offer: Offer, at: float) -> bool:
        changes = self._changes.get(offer)
        return changes is None or _count(changes, at) > 0

    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, _: float | None, /) -> float:
        changes = self._changes.get(offer)
        if changes is None or not offer.spot:
            return math.inf
        count = _count(changes, granted_at)
        if count == 0:
            return granted_at
        place = 1 + int(uniform(self._seed, "place", lease) * count)
        times, counts = changes
        return next(times[i] for i in range(bisect_right(times, granted_at), len(times)) if counts[i] < place)


Changes = tuple[tuple[float, ...], tuple[int, ...]]


def _changes(offer: Offer, runs: Sequence[Run]) -> Changes:
    """Runs as a step function that is zero wherever there is no run, after the last included."""
    times: list[float] = [-math.inf]
    counts: list[int] = [0]
    for start, end, count in runs:
        if not start < end or count < 0 or start < times[-1]:
            raise DataError(f"availability of {offer}: the run {start}..{end} with {count} overlaps or is empty")
        if start == times[-1]:
            counts[-1] = count
        else:
            times.append(start)
            counts.append(count)
        times.append(end)
        counts.append(0)
    return tuple(times), tuple(counts)


def _count(changes: Changes, at: float) -> int:
    times, counts = changes
    return counts[bisect_right(times, at) - 1]


def read_availability(
    runs_path: str | Path, index_path: str | Path, *, start: float, kind: str = "availability", nodes: int | None = None
) -> dict[Offer, tuple[Run, ...]]:
    """Run-length encoded traces: parquet (trace_id, start_tick, n_ticks, value) with a CSV index of the traces.

    The first tick of every trace is at `start`; `kind` and `nodes` select traces of the index. Where two traces are of
    the same offer, the first one in the index is used.
    """
    chosen: dict[str, tuple[Offer, float]] = {}
    for line, row in enumerate(_index(Path(index_path)), 2):
        try:
            if row["kind"] != kind or (nodes is not None and int(row["nodes"]) != nodes):
                continue
            offer = Offer(provider=row["cloud"], zone=row["zone"], machine=row["instance_type"], spot=True)
            gap_s = float(row["gap_s"])
        except (KeyError, ValueError) as error:
            raise DataError(f"{index_path}, line {line}: {error} is missing or unreadable") from None
        if all(offer != other for other, _ in chosen.values()):
            chosen[row["trace_id"]] = offer, gap_s
    if not chosen:
        raise DataError(f"{index_path} has no trace with kind={kind!r}, nodes={nodes!r}", hint="see its columns")
    runs: dict[Offer, list[Run]] = {offer: [] for offer, _ in chosen.values()}
    for trace, tick, ticks, value in _coded(Path(runs_path)):
        if trace in chosen:
            offer, gap_s = chosen[trace]
            runs[offer].append((start + tick * gap_s, start + (tick + ticks) * gap_s, value))
    return {offer: tuple(sorted(found)) for offer, found in runs.items()}


def _index(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _coded(path: Path) -> list[tuple[str, int, int, int]]:
    arrow, parquet = need("pyarrow", extra="tables"), need("pyarrow.parquet", extra="tables")
    try:
        table = parquet.read_table(path)
        columns = [table[name].to_pylist() for name in ("trace_id", "start_tick", "n_ticks", "value")]
    except (OSError, KeyError, arrow.ArrowInvalid) as error:
        raise DataError(f"{path} is not a run-length coded availability file: {error}") from error
    return list(zip(*columns, strict=True))
