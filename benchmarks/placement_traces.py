"""Recorded availability of spot machines in ticks of two minutes, with prices, and what was known at any tick.

Amazon's traces before August 2023 are for choosing, all others for reporting. A trace that counts machines is read as
several markets: that of the fourth in the queue, of the eighth, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.tables import data_folder
from shoestring.errors import DataError
from shoestring.models.zone_survival import YOUNG_H, ZoneRecord

TICK_S = 120.0
WEEK = int(7 * 86400 / TICK_S)
PLACES = (4, 8, 12, 16)
"""In the queue for the machines of a zone that has up to sixteen."""
ON_DEMAND_USD = {"p2.xlarge": 0.90, "p2.8xlarge": 7.20, "p3.2xlarge": 3.06, "p3.16xlarge": 24.48}
SPOT_SHARE = 0.35
"""Of the on-demand price, where no spot price was recorded."""


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
    def ages(self) -> np.ndarray:
        """Ticks since each zone's present spell of availability began; this tick counts."""
        ages = np.zeros(self.up.shape, dtype=np.int64)
        run = np.zeros(self.zones, dtype=np.int64)
        for tick in range(self.ticks):
            run = np.where(self.up[:, tick], run + 1, 0)
            ages[:, tick] = run
        return ages

    @cached_property
    def _counts(self) -> dict[str, np.ndarray]:
        before, now = self.up[:, :-1], self.up[:, 1:]
        young = self.ages <= YOUNG_H * 3600 / TICK_S
        none, none_before = ~self.up.any(axis=0), ~self.up.any(axis=0)[:-1]
        raw = {
            "up": self.up,
            "lost": _late(before & ~now),
            "back": _late(~before & now),
            "young": self.up & young,
            "young_lost": _late(before & ~now & young[:, :-1]),
            "none": none[None],
            "any_back": _late((none_before & ~none[1:])[None]),
            "lost_alone": _late(before & ~now & self.up.any(axis=0)[None, 1:]),
        }
        return {name: np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0))) for name, counts in raw.items()}

    def _last_week(self, name: str, row: int, tick: int) -> float:
        sums = self._counts[name]
        return float(sums[row, tick + 1] - sums[row, max(0, tick + 1 - WEEK)])

    def record(self, zone: int, tick: int) -> ZoneRecord:
        """What probes of the last seven days told by this tick."""
        hours = TICK_S / 3600
        up = self._last_week("up", zone, tick)
        return ZoneRecord(
            losses=self._last_week("lost", zone, tick),
            uptime_h=up * hours,
            returns=self._last_week("back", zone, tick),
            downtime_h=(min(tick + 1, WEEK) - up) * hours,
        )

    def young_record(self, zone: int, tick: int) -> ZoneRecord:
        return ZoneRecord(
            losses=self._last_week("young_lost", zone, tick),
            uptime_h=self._last_week("young", zone, tick) * TICK_S / 3600,
        )

    def any_zone(self, tick: int) -> ZoneRecord:
        """How long it took until any zone had machines again when none had."""
        return ZoneRecord(
            returns=self._last_week("any_back", 0, tick), downtime_h=self._last_week("none", 0, tick) * TICK_S / 3600
        )

    def elsewhere(self, zone: int, tick: int) -> float:
        """How often another zone had machines when this one lost its own."""
        alone, lost = self._last_week("lost_alone", zone, tick), self._last_week("lost", zone, tick)
        prior = 0.5 if self.zones > 1 else 0.0
        return (alone + 2.0 * prior) / (lost + 2.0)

    def only(self, zone: int) -> Market:
        return Market(f"{self.name}/{zone}", self.up[[zone]], self.usd_per_hour[[zone]], self.on_demand_usd_per_hour)


def _late(changes: np.ndarray) -> np.ndarray:
    """A change is seen at the tick after."""
    return np.pad(changes, ((0, 0), (1, 0)))


def load() -> tuple[list[Market], list[Market]]:
    """Markets for choosing and for reporting: machines of one type in all zones of one recording."""
    import pandas as pd

    folder = data_folder()
    try:
        index = pd.read_csv(folder / "spot_availability_index.csv")
        runs = dict(iter(pd.read_parquet(folder / "spot_availability_rle.parquet").groupby("trace_id")))
        paid = dict(iter(pd.read_csv(folder / "spot_availability_v100_prices_rle.csv").groupby("trace_id")))
    except FileNotFoundError as missing:
        raise DataError(f"no availability traces: {missing.filename} is missing") from None
    mean_price = {
        _zone(name): float((rows.price_usd_hr * rows.n_ticks).sum() / rows.n_ticks.sum()) for name, rows in paid.items()
    }
    choosing: list[Market] = []
    reporting: list[Market] = []
    for (date, machine, kind), rows in index.groupby(["start_date", "instance_type", "kind"]):
        if machine not in ON_DEMAND_USD and not machine.startswith("c3-"):
            continue
        chooses = date < "2023-08" and rows.cloud.iloc[0] == "aws"
        for place in PLACES if rows.nodes.iloc[0] > 1 else (1,):
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
            market = Market(
                f"{date}/{machine}/{kind}" + (f"/place {place}" if place > 1 else ""),
                np.stack([count[:length] >= place for count in counts]),
                np.stack([price[:length] for price in prices]).astype(float),
                list_price,
            )
            (choosing if chooses else reporting).append(market)
    return choosing, reporting


def _zone(trace_id: str) -> str:
    return trace_id.rpartition("/")[2].partition("_")[0]


def _ticks(runs: object, column: str, gap_s: float) -> np.ndarray:
    """Run lengths as one value for each of our ticks: the one that held when it began."""
    values = np.repeat(runs[column].to_numpy(), runs.n_ticks.to_numpy())  # type: ignore[index, attr-defined]
    at = (np.arange(int(len(values) * gap_s / TICK_S)) * TICK_S / gap_s).astype(int)
    return values[at]
