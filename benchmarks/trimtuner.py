"""What it costs to find a good candidate under a constraint, with data fractions and without, on recorded tables.

    python -m benchmarks.trimtuner [--quick] [--json FILE] [--plot FILE] [--held-out FOLDER]

Costs are in units of the limit: what one full run may cost at most. Counted is what was spent until the mean over the
seeds stays above 90, 95 and 99 % of the feasible optimum.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks.datasets import add_held_out_option, announce, held_out
from benchmarks.plotting import add_plot_option, check_plot
from benchmarks.rows import parser, publish
from benchmarks.trimtuner_contestants import ON_THE_PAPERS_TABLES, contestants, one_thread
from benchmarks.trimtuner_play import Curve, play
from benchmarks.trimtuner_plot import draw
from benchmarks.trimtuner_rows import DEFAULT, Results, details, per_table, promised, show
from benchmarks.trimtuner_tables import Table, load
from shoestring.errors import DataError

SEEDS, QUICK_SEEDS = 20, 3
BUDGET_LIMITS = 25.0
"""A run ends when it has spent this many times the limit, or after MAX_EVALUATIONS."""
MAX_EVALUATIONS = 160
"""Enough to spend nearly all of the budget also with small fractions: money is what counts."""
OTHER_LIMITS = (0.5, 0.7, 1.5)
QUICK_TABLES = ("rnn", "mnist/epochs")
PAPERS_EVALUATIONS = 48
"""As in the paper, for its own methods on its tables: four initial runs and 44 more."""
SLOW = ("optuna_gp", "botorch")
SLOW_SEEDS = 5
"""Of peers that take about a second per suggestion: on the paper's tables only, with as many evaluations."""
PROCESSES = 2

Task = tuple[Table, str, Sequence[int]]
"""A table, a method, and the seeds of its runs."""


def tasks(tables: Sequence[Table], methods: Sequence[str], seeds: int) -> Iterator[Task]:
    """Slow ones first, so that no process is left alone at the end."""
    everyone = [(table, method) for method in methods for table in tables if plays(method, table)]
    for table, method in sorted(everyone, key=lambda pair: (pair[1] not in SLOW, pair[1] != DEFAULT)):
        count = min(seeds, SLOW_SEEDS) if method in SLOW else seeds
        for first in range(0, count, 5):
            yield table, method, range(first, min(first + 5, count))


def plays(method: str, table: Table) -> bool:
    """Other limits are used with two methods only."""
    if method in (*SLOW, *ON_THE_PAPERS_TABLES):
        return table.family == "trimtuner"
    return table.family != "limits" or method in (DEFAULT, "eic")


def played(task: Task) -> list[Curve]:
    table, method, seeds = task
    make = contestants()[method]
    most = PAPERS_EVALUATIONS if method in (*SLOW, *ON_THE_PAPERS_TABLES) else MAX_EVALUATIONS
    return [play(table, make(table, seed), BUDGET_LIMITS * table.limit_usd, most) for seed in seeds]


def main() -> None:
    asked = parser(__doc__.partition("\n\n")[0])
    add_plot_option(asked, "quality against cost and what the default saves")
    add_held_out_option(asked)
    args = asked.parse_args()
    check_plot(args.plot)
    try:
        tables = load()
    except DataError as missing:
        print(f"skipped: {missing}")
        return
    methods = list(contestants())
    if args.quick:
        tables = tables[:2] if held_out() else [table for table in tables if table.name in QUICK_TABLES]
        methods = [method for method in methods if method not in (*SLOW, *ON_THE_PAPERS_TABLES)]
    else:
        tables += [table.limited(factor) for table in tables if table.family == "trimtuner" for factor in OTHER_LIMITS]
    announce("trimtuner", [table.name for table in tables])
    results = Results(tables, runs(tables, methods, QUICK_SEEDS if args.quick else SEEDS))
    show(results)
    publish([*promised(results), *per_table(results)], args.json, unprinted=details(results))
    if args.plot is not None:
        draw(results, args.plot)


def runs(tables: Sequence[Table], methods: Sequence[str], seeds: int) -> dict[tuple[str, str], list[Curve]]:
    """Of every table and its methods, in the order of the tables and the methods."""
    curves: dict[tuple[str, str], list[Curve]] = {
        (table.name, method): [] for table in tables for method in methods if plays(method, table)
    }
    work = list(tasks(tables, methods, seeds))
    began = time.monotonic()
    with ProcessPoolExecutor(PROCESSES, initializer=one_thread) as pool:
        for done, ((table, method, _), more) in enumerate(zip(work, pool.map(played, work), strict=True), start=1):
            curves[table.name, method] += more
            if sys.stderr.isatty():
                print(f"\r{done} of {len(work)}, {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    return curves


if __name__ == "__main__":
    main()
