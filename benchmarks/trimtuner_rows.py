"""From runs to rows: what each method spent until it stayed good, and the saving of the default."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.rows import Row
from benchmarks.trimtuner_play import Curve, spent_until
from benchmarks.trimtuner_tables import Table

DEFAULT = "trimtuner"
LEVELS = (0.90, 0.95, 0.99)
PROMISES = (
    ("trimtuner_cost90_eic_over_default", ("trimtuner",), 0.90, "eic", 4.0),
    ("trimtuner_cost99_eic_over_default", ("trimtuner",), 0.99, "eic", 3.0),
    ("mnist_cost90_eic_over_default", ("mnist",), 0.90, "eic", 3.0),
    ("lcdb_cost90_eic_over_default", ("lcdb",), 0.90, "eic", 2.0),
    ("nlp_cost90_eic_over_default", ("nlp",), 0.90, "eic", 3.0),
    ("worst_cost90_eicusd2_over_default", ("trimtuner", "mnist", "lcdb", "nlp"), 0.90, "eic_usd_2", 1.0),
    ("worst_limit_eic_over_default", ("limits",), 0.90, "eic", 1.0),
)
"""Row, families, level, whose cost over the default's, goal: the worst table, scored strictly."""


@dataclass(frozen=True)
class Results:
    tables: Sequence[Table]
    curves: Mapping[tuple[str, str], Sequence[Curve]]
    """Of a table and a method, one for each seed."""

    def of(self, families: Sequence[str]) -> list[Table]:
        return [table for table in self.tables if table.family in families]

    def until(self, table: Table, method: str, level: float, axis: str = "usd", score: str = "strict") -> float:
        """Dollars, or seconds, until the mean of the runs stays at this level."""
        curves = self.curves[table.name, method]
        return spent_until([(getattr(curve, axis), getattr(curve, score)) for curve in curves], level)

    def at_least(self, table: Table, method: str, axis: str = "usd") -> float:
        """What all runs have spent at their ends: a method that is not there by then needs more than this."""
        return min(float(getattr(curve, axis)[-1]) for curve in self.curves[table.name, method])

    def saving(self, table: Table, method: str, level: float, axis: str = "usd") -> tuple[float, str]:
        """How many times as much another method spends as the default, and a remark."""
        ours, theirs = (self.until(table, name, level, axis) for name in (DEFAULT, method))
        if math.isinf(ours):
            return 0.0, "the default never got there"
        if math.isinf(theirs):
            return self.at_least(table, method, axis) / ours, f"at least: {method} never got there"
        unit = table.limit_usd if axis == "usd" else 1.0
        return theirs / ours, f"{theirs / unit:.2f} over {ours / unit:.2f} {'limits' if axis == 'usd' else 's'}"

    def final(self, table: Table, method: str, score: str = "strict") -> float:
        return statistics.fmean(float(getattr(curve, score)[-1]) for curve in self.curves[table.name, method])


def promised(results: Results) -> list[Row]:
    """The rows with goals; those of families that were not run are left out."""
    rows = []
    for name, families, level, method, goal in PROMISES:
        savings = {table.name: results.saving(table, method, level) for table in results.of(families)}
        if savings:
            worst = min(savings, key=lambda table: savings[table][0])
            value, words = savings[worst]
            spread = f"the worst of {len(savings)}: {worst}" if len(savings) > 1 else worst
            rows.append(Row(name, value, "x", f"{spread}, {words}; goal >= {goal:g}"))
    finals = {table.name: results.final(table, DEFAULT) for table in results.tables if table.family != "limits"}
    worst = min(finals, key=finals.__getitem__)
    rows.append(Row("final_value", finals[worst], "share", f"of the optimum, the worst table: {worst}; goal >= 0.99"))
    wrong = sum(curve.measured_infeasible for curve in ours(results))
    picks = sum(len(curve.usd) for curve in ours(results))
    rows.append(Row("recommended_measured_infeasible", wrong, "picks", f"of {picks:,} by the default; goal 0"))
    return rows


def ours(results: Results) -> Iterator[Curve]:
    for (_, method), curves in results.curves.items():
        if method == DEFAULT:
            yield from curves


def per_table(results: Results) -> list[Row]:
    """Beside every row of a family, one for each of its tables."""
    rows = []
    for name, families, level, method, goal in PROMISES:
        tables = results.of(families)
        for table in tables if len(tables) > 1 else ():
            value, words = results.saving(table, method, level)
            rows.append(Row(f"{name}:{table.name}", value, "x", f"{words}; goal >= {goal:g}"))
    for table in results.tables:
        rows.append(Row(f"final_value:{table.name}", results.final(table, DEFAULT), "share", "of the optimum"))
    return rows


def details(results: Results) -> list[Row]:
    """Every method on every table, by both scores: cost in limits, time in hours; infinity is written as -1."""
    rows = []
    for table_name, method in results.curves:
        table = next(table for table in results.tables if table.name == table_name)
        seeds = f"mean of {len(results.curves[table_name, method])} seeds"
        for score in ("strict", "accuracy_c"):
            for level in LEVELS:
                place = f"{level:.0%}".removesuffix("%")
                cost = results.until(table, method, level, "usd", score) / table.limit_usd
                hours = results.until(table, method, level, "seconds", score) / 3600
                rows.append(Row(f"{table_name}:{method}:{score}:cost{place}", _finite(cost), "limits", seeds))
                rows.append(Row(f"{table_name}:{method}:{score}:time{place}", _finite(hours), "h", seeds))
            rows.append(
                Row(f"{table_name}:{method}:{score}:final", results.final(table, method, score), "share", seeds)
            )
    return rows


def show(results: Results) -> None:
    """One line for each method on each table."""
    print(f"{'':<30}{'cost in limits until 90/95/99 %':<34}{'the same by Accuracy_C':<28}{'time 90 %':>10}{'final':>8}")
    for table in results.tables:
        print(
            f"{table.name}: {len(table.configs)} candidates, {table.feasible.sum()} within ${table.limit_usd:.4g}, "
            f"{table.near_the_best()} of them near the best ({table.metric})"
        )
        for name, method in results.curves:
            if name != table.name:
                continue
            by_score = [_levels(results, table, method, score) for score in ("strict", "accuracy_c")]
            hours = _short(results.until(table, method, 0.90, "seconds") / 3600)
            print(f"  {method:<28}{by_score[0]:<34}{by_score[1]:<28}{hours:>8} h{results.final(table, method):>8.3f}")


def _levels(results: Results, table: Table, method: str, score: str) -> str:
    costs = (results.until(table, method, level, "usd", score) / table.limit_usd for level in LEVELS)
    return "/".join(_short(cost) for cost in costs)


def _short(number: float) -> str:
    return "never" if math.isinf(number) else f"{number:.2g}" if number < 10 else f"{number:.0f}"


def _finite(number: float) -> float:
    return number if math.isfinite(number) else -1.0
