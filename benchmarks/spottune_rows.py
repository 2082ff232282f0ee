"""The results of the SpotTune benchmark: means, ratios, and the rows with goals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, median

from benchmarks.rows import Row
from benchmarks.spottune_arena import Outcome
from benchmarks.spottune_contestants import (
    AS_PRINTED,
    BY_LEVEL,
    CHEAPEST_ON_DEMAND,
    CHEAPEST_SPOT,
    DEFAULT,
    FASTEST_ON_DEMAND,
    FASTEST_SPOT,
    ORACLE,
    PLAIN,
    TOLD_SPEEDS,
)
from benchmarks.spottune_market import Market

SHORT, WHOLE = 0.7, 1.0
"""The two thetas at which all are compared."""


class Scores:
    """Means over the studies of one contestant at one theta in one market."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._by: dict[tuple[str, str, float], list[Outcome]] = {}
        for outcome in outcomes:
            self._by.setdefault((outcome.market, outcome.contestant, outcome.theta), []).append(outcome)
        self.markets = list(dict.fromkeys(outcome.market for outcome in outcomes))
        self.tasks = list(dict.fromkeys(outcome.task for outcome in outcomes))

    def of(self, market: str, name: str, theta: float, task: str | None = None) -> list[Outcome]:
        found = self._by.get((market, name, theta), [])
        return found if task is None else [outcome for outcome in found if outcome.task == task]

    def lines(self, market: str) -> list[tuple[str, float]]:
        """All contestants there at one of the two thetas."""
        return [(name, theta) for where, name, theta in self._by if where == market and theta in (SHORT, WHOLE)]

    def thetas(self, market: str) -> list[float]:
        """Those that the default was tried at."""
        return sorted(theta for where, name, theta in self._by if (where, name) == (market, DEFAULT))

    def mean(
        self, of: Callable[[Outcome], float], market: str, name: str, theta: float, task: str | None = None
    ) -> float:
        return fmean(of(outcome) for outcome in self.of(market, name, theta, task))

    def usd(self, market: str, name: str, theta: float, task: str | None = None) -> float:
        return self.mean(lambda outcome: outcome.usd, market, name, theta, task)

    def hours(self, market: str, name: str, theta: float, task: str | None = None) -> float:
        return self.mean(lambda outcome: outcome.hours, market, name, theta, task)

    def free(self, market: str, name: str, theta: float, task: str | None = None) -> float:
        return self.mean(lambda outcome: outcome.free, market, name, theta, task)

    def pcr(self, market: str, name: str, theta: float, task: str | None = None) -> float:
        """Performance-cost rate, 1 / (JCT x cost), as a multiple of the default's at theta 0.7: IV-B1 of the paper."""
        mine = self.usd(market, name, theta, task) * self.hours(market, name, theta, task)
        unit = self.usd(market, DEFAULT, SHORT, task) * self.hours(market, DEFAULT, SHORT, task)
        return unit / mine if mine else math.inf

    def usd_ratio(self, market: str, name: str, against: str, theta: float) -> float:
        """Of the dollars of all studies together."""
        return self.usd(market, name, theta) / self.usd(market, against, theta)

    def typical_ratio(self, market: str, name: str, against: str, theta: float, their_theta: float) -> float:
        """Of the dollars of a study, the median: one price spike does not decide it."""
        pairs = zip(self.of(market, name, theta), self.of(market, against, their_theta), strict=True)
        return median(mine.usd / theirs.usd for mine, theirs in pairs)


def promised(scores: Scores, markets: Iterable[Market]) -> Iterator[Row]:
    """The rows with goals: of every recording by its kind, and of the worst market."""
    for market in _one_each(markets):
        yield from _of_auction(scores, market.name) if market.auction else _of_today(scores, market.name)
    saved = {
        market: scores.usd(market, DEFAULT, SHORT) / scores.usd(market, DEFAULT, WHOLE) for market in scores.markets
    }
    yield _worst("theta07_vs_theta10", saved, "cost of the default; goal <= 0.80")
    plain = _ratios(scores, PLAIN)
    yield _worst("default_never_worse_than_plain", plain, "cost; goal <= 1.05")
    before = _ratios(scores, BY_LEVEL)
    yield _worst("default_cost_vs_by_level", before, "cost, risk by relative rises against the rule before")


def _ratios(scores: Scores, against: str) -> dict[str, float]:
    return {
        f"{market} at {theta}": scores.usd_ratio(market, DEFAULT, against, theta)
        for market in scores.markets
        for theta in (SHORT, WHOLE)
    }


def _one_each(markets: Iterable[Market]) -> list[Market]:
    """The first market of each recording."""
    found: dict[str, Market] = {}
    for market in markets:
        found.setdefault(market.recording, market)
    return list(found.values())


def _of_auction(scores: Scores, market: str) -> Iterator[Row]:
    yield Row(
        f"default_cost_vs_cheapest_{market}",
        scores.typical_ratio(market, DEFAULT, CHEAPEST_SPOT, WHOLE, WHOLE),
        "ratio",
        "theta 1.0, single cheapest spot type, never outbid, median of the studies; goal <= 0.80",
    )
    yield Row(
        f"oracle_free_steps{_suffix(market)}",
        scores.free(market, ORACLE, SHORT),
        "share",
        f"of steps, on machines refunded in full; {market}, theta 0.7; goal >= 0.8",
    )


def _of_today(scores: Scores, market: str) -> Iterator[Row]:
    kept = min((CHEAPEST_ON_DEMAND, FASTEST_ON_DEMAND), key=lambda name: scores.usd(market, name, WHOLE))
    yield Row(
        f"default_cost_vs_ondemand_{market}",
        scores.usd_ratio(market, DEFAULT, kept, WHOLE),
        "ratio",
        f"theta 1.0, {kept}, the cheaper of the two; goal <= 0.55",
    )


def _suffix(market: str) -> str:
    """Rows that are about one market and do not name it are about 2016."""
    return "" if market == "2016" else f"_{market}"


def _worst(name: str, ratios: dict[str, float], told: str) -> Row:
    where = max(ratios, key=ratios.__getitem__)
    others = ", ".join(f"{place} {ratio:.2f}" for place, ratio in ratios.items() if place != where)
    return Row(name, ratios[where], "ratio", f"{told}; worst in {where}, else {others}")


def beside(scores: Scores, outcomes: Sequence[Outcome], markets: Iterable[Market]) -> Iterator[Row]:
    """The paper's claims, and rows without goals."""
    for market in _one_each(markets):
        if market.auction:
            yield from _claims(scores, market.name)
    late = sum(outcome.unfinished for outcome in outcomes)
    yield Row("unfinished_studies", late, "studies", f"of {len(outcomes)}")


def _claims(scores: Scores, market: str) -> Iterator[Row]:
    most = max(outcome.usd for outcome in scores.of(market, CHEAPEST_SPOT, WHOLE))
    told = f"the dollars of all studies together: without being outbid, one cost up to ${most:.2f}"
    total = scores.usd_ratio(market, DEFAULT, CHEAPEST_SPOT, WHOLE)
    yield Row(f"default_cost_vs_cheapest_{market}_total", total, "ratio", told)
    for theta, claim in ((WHOLE, 0.585), (SHORT, 0.2436)):
        for name in (DEFAULT, BY_LEVEL, AS_PRINTED, PLAIN, TOLD_SPEEDS, ORACLE):
            ratio = scores.typical_ratio(market, name, CHEAPEST_SPOT, theta, WHOLE)
            told = f"median; SpotTune has {claim:.2f} in the paper, on prices of 2017"
            yield Row(f"{name}_cost_vs_cheapest_{market}_at_{theta}", ratio, "ratio", told)
        ratio = scores.typical_ratio(market, DEFAULT, BY_LEVEL, theta, theta)
        yield Row(f"default_cost_vs_by_level_{market}_at_{theta}", ratio, "ratio", "median of the studies")
    speed = scores.hours(market, CHEAPEST_SPOT, WHOLE) / scores.hours(market, DEFAULT, SHORT)
    yield Row(f"default_speed_vs_cheapest_{market}_at_0.7", speed, "ratio", "JCT; the paper has 2.14")
    speed = scores.hours(market, FASTEST_SPOT, WHOLE) / scores.hours(market, DEFAULT, SHORT)
    yield Row(f"default_speed_vs_fastest_{market}_at_0.7", speed, "ratio", "JCT; the paper has 0.65")
    kept = scores.mean(lambda outcome: outcome.best_kept, market, DEFAULT, SHORT)
    yield Row(f"default_keeps_the_best_at_0.7{_suffix(market)}", kept, "share", "of studies; the paper has 1.0")


def details(scores: Scores) -> Iterator[Row]:
    """Every line of the tables."""
    for market in scores.markets:
        for name, theta in scores.lines(market):
            told = f"mean of {len(scores.of(market, name, theta))} studies"
            place = f"{market}_{name}_{theta}"
            yield Row(f"usd_{place}", scores.usd(market, name, theta), "USD", told)
            yield Row(f"jct_{place}", scores.hours(market, name, theta), "h", told)
            yield Row(f"free_{place}", scores.free(market, name, theta), "share", told)


def show(scores: Scores) -> None:
    for market in scores.markets:
        print(f"\n{market:<22} theta   cost $   JCT h      PCR   free  taken  best kept")
        for name, theta in scores.lines(market):
            taken = scores.mean(lambda outcome: outcome.revocations, market, name, theta)
            kept = scores.mean(lambda outcome: outcome.best_kept, market, name, theta)
            line = market, name, theta
            print(
                f"{name:<22} {theta:>5} {scores.usd(*line):>8.2f} {scores.hours(*line):>7.2f} {scores.pcr(*line):>8.3g}"
                f" {scores.free(*line):>6.2f} {taken:>6.1f} {kept:>10.2f}"
            )
