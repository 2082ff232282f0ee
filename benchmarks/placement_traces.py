"""Recorded availability of spot machines in ticks of two minutes, with prices, and the information up to any tick.

Amazon's traces before August 2023 are for choosing, all others for reporting (datasets.toml). A trace that counts
machines is read as several markets: that of the fourth in the queue, of the eighth, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks import datasets
from shoestring.errors import DataError
from shoestring.models.zone_survival import ZoneRecord

RUNS = "spot_availability_rle.parquet"
YOUNG_H = 1.0
"""Spells of availability younger than this end far more often."""
TICK_S = 120.0
WEEK = int(7 * 86400 / TICK_S)
PLACES = (4, 8, 12, 16)
"""In the queue for the machines of a zone that has up to sixteen."""
ON_DEMAND_USD = {"p2.xlarge": 0.90, "p2.8xlarge": 7.20, "p3.2xlarge": 3.06, "p3.16xlarge": 24.48}
SPOT_SHARE = 0.35
"""Of the on-demand price, where no spot price was recorded."""


@dataclass(frozen=True, eq=False)
class Line:
    """One zone, as one place in the queue for its machines sees it."""

    up: np.ndarray

    @cached_property
    def ages(self) -> np.ndarray:
        """Ticks since the present spell of availability began; this tick counts."""
        ticks = np.arange(len(self.up))
        return ticks - np.maximum.accumulate(np.where(self.up, -1, ticks))

    @cached_property
    def _sums(self) -> dict[str, np.ndarray]:
        before, now = self.up[:-1], self.up[1:]
        young = self.ages <= YOUNG_H * 3600 / TICK_S
        raw = {
            "up": self.up,
            "lost": _late(before & ~now),
            "back": _late(~before & now),
            "young": self.up & young,
            "young_lost": _late(before & ~now & young[:-1]),
        }
        return {name: np.pad(np.cumsum(counts), (1, 0)) for name, counts in raw.items()}

    def _last_week(self, name: str, tick: int) -> float:
        sums = self._sums[name]
        return float(sums[tick + 1] - sums[max(0, tick + 1 - WEEK)])

    def record(self, tick: int) -> ZoneRecord:
        hours = TICK_S / 3600
        up = self._last_week("up", tick)
        return ZoneRecord(
            losses=self._last_week("lost", tick),
            uptime_h=up * hours,
            returns=self._last_week("back", tick),
            downtime_h=(min(tick + 1, WEEK) - up) * hours,
        )

    def young_record(self, tick: int) -> ZoneRecord:
        return ZoneRecord(
            losses=self._last_week("young_lost", tick), uptime_h=self._last_week("young", tick) * TICK_S / 3600
        )


@dataclass(frozen=True)
class Market:
    """Zones side by side: rows are zones, columns are ticks."""

    name: str
    up: np.ndarray
    usd_per_hour: np.ndarray
    on_demand_usd_per_hour: float

    @property
    def zones(self) -> int:
        return self.up.shape[0]

    @property
    def ticks(self) -> int:
        return self.up.shape[1]

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return tuple(map(Line, self.up))

    @cached_property
    def ages(self) -> np.ndarray:
        """Ticks since each zone's present spell of availability began; this tick counts."""
        return np.stack([line.ages for line in self.lines])

    def record(self, zone: int, tick: int) -> ZoneRecord:
        """Probes of the last seven days before this tick."""
        return self.lines[zone].record(tick)

    def young_record(self, zone: int, tick: int) -> ZoneRecord:
        return self.lines[zone].young_record(tick)

    def any_zone(self, tick: int) -> ZoneRecord:
        """How long it took until any zone had machines again when none had."""
        none = ~self.up[:, self._week_of(tick)].any(axis=0)
        seen = none[-WEEK:]  # without the tick before, of which only the change to the first one counts
        return ZoneRecord(returns=float((none[:-1] & ~none[1:]).sum()), downtime_h=float(seen.sum()) * TICK_S / 3600)

    def elsewhere(self, zone: int, tick: int) -> float:
        """How often another zone had machines when this one lost its own."""
        up = self.up[:, self._week_of(tick)]
        lost = up[zone, :-1] & ~up[zone, 1:]
        alone = lost & up[:, 1:].any(axis=0)
        prior = 0.5 if self.zones > 1 else 0.0
        return (float(alone.sum()) + 2.0 * prior) / (float(lost.sum()) + 2.0)

    def _week_of(self, tick: int) -> slice:
        """The last seven days, and the tick before them."""
        return slice(max(0, tick - WEEK), tick + 1)

    def only(self, zone: int) -> Market:
        return Market(f"{self.name}/{zone}", self.up[[zone]], self.usd_per_hour[[zone]], self.on_demand_usd_per_hour)


@dataclass(frozen=True)
class SharedMarket(Market):
    """A market that shares zones with others, so that derived data is computed once."""

    shared: tuple[Line, ...] = ()

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return self.shared


@dataclass(frozen=True, eq=False)
class Recording:
    """How many machines of one type there were: rows are zones, columns are ticks."""

    name: str
    counts: np.ndarray
    usd_per_hour: np.ndarray
    on_demand_usd_per_hour: float

    @property
    def most(self) -> int:
        """The largest capacity of a zone at any time, or the number of probed machines."""
        return int(self.counts.max())

    @cached_property
    def _lines(self) -> list[list[Line]]:
        """By zone and place; the first place is 1. The last one never has a machine."""
        return [[Line(row >= place) for place in range(1, self.most + 2)] for row in self.counts]

    def market(self, places: Sequence[int]) -> Market:
        """As seen from these places in the queues of its zones."""
        lines = tuple(by_place[place - 1] for by_place, place in zip(self._lines, places, strict=True))
        up = np.stack([line.up for line in lines])
        return SharedMarket(self.name, up, self.usd_per_hour, self.on_demand_usd_per_hour, lines)


def _late(changes: np.ndarray) -> np.ndarray:
    """A change is seen at the tick after."""
    return np.pad(changes, (1, 0))


def markets(recording: Recording) -> list[Market]:
    """All zones of a recording as single jobs see them, each from its place in the queue."""
    places = PLACES if recording.most > 1 else (1,)
    return [
        Market(
            recording.name + (f"/place {place}" if place > 1 else ""),
            recording.counts >= place,
            recording.usd_per_hour,
            recording.on_demand_usd_per_hour,
        )
        for place in places
    ]


def recordings(role: datasets.Role) -> list[Recording]:
    """Of this role: machines of one type in all zones. All of a held-out folder are for reporting."""
    import pandas as pd

    index = pd.read_csv(datasets.files("spot_availability_index.csv")[0])
    runs = dict(iter(pd.read_parquet(datasets.files(RUNS)[0]).groupby("trace_id", observed=True)))
    priced = [pd.read_csv(path) for path in datasets.reported_folder().glob("spot_availability*prices_rle.csv")]
    paid = {name: rows for prices in priced for name, rows in prices.groupby("trace_id", observed=True)}
    mean_price = {
        _zone(name): float((rows.price_usd_hr * rows.n_ticks).sum() / rows.n_ticks.sum()) for name, rows in paid.items()
    }
    found: list[Recording] = []
    for (date, machine, kind), rows in index.groupby(["start_date", "instance_type", "kind"]):
        if machine not in ON_DEMAND_USD and not machine.startswith("c3-"):
            continue
        counts = [_ticks(runs[row.trace_id], "value", row.gap_s) for row in rows.itertuples()]
        list_price = ON_DEMAND_USD.get(machine, 4.0)
        prices = []
        for row, count in zip(rows.itertuples(), counts, strict=True):
            if row.trace_id in paid:
                prices.append(_ticks(paid[row.trace_id], "price_usd_hr", row.gap_s))
            else:
                known = mean_price.get(row.zone) if machine == "p3.2xlarge" else None
                prices.append(np.full(len(count), known or SPOT_SHARE * list_price))
        length = min(len(count) for count in counts)
        recording = Recording(
            f"{date}/{machine}/{kind}",
            np.stack([count[:length] for count in counts]),
            np.stack([price[:length] for price in prices]).astype(float),
            list_price,
        )
        if datasets.held_out() is not None or recording.name in datasets.names("availability", role):
            found.append(recording)
    if not found:
        raise DataError(f"no trace of {', '.join(ON_DEMAND_USD)} or c3 in {datasets.reported_folder()}")
    return found


def _zone(trace_id: str) -> str:
    return trace_id.rpartition("/")[2].partition("_")[0]


def _ticks(runs: object, column: str, gap_s: float) -> np.ndarray:
    """Run lengths as one value for each of our ticks: the one that held when it began."""
    values = np.repeat(runs[column].to_numpy(), runs.n_ticks.to_numpy())  # type: ignore[index, attr-defined]
    at = (np.arange(int(len(values) * gap_s / TICK_S)) * TICK_S / gap_s).astype(int)
    return values[at]
