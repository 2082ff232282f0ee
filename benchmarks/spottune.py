"""What a study costs: SpotTune on recorded spot prices, against single machine types, cheapest steps and an oracle.

    python -m benchmarks.spottune [--quick] [--json FILE] [--plot FILE] [--choosing]

Studies of sixteen trials, whose curves were trained for real, run through the whole product at start times spread over
every other week of each recording, the six workloads in turn. `--choosing` compares candidates for the default instead,
in the weeks between.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes side by side, not threads: before NumPy is loaded

from benchmarks.datasets import data_folder
from benchmarks.plotting import add_plot_option, check_plot
from benchmarks.rows import parser, publish
from benchmarks.spottune_arena import Bout, hold
from benchmarks.spottune_contestants import CONTESTANTS, DEFAULT, PROPOSED, Contestant
from benchmarks.spottune_market import MARKETS, Market, read_book
from benchmarks.spottune_plot import MARKET as DRAWN
from benchmarks.spottune_plot import draw
from benchmarks.spottune_rows import SHORT, WHOLE, Scores, beside, details, promised, show
from benchmarks.spottune_workloads import Task, stretched
from benchmarks.workload_curves import WORKLOADS, curves
from shoestring.errors import ShoestringError
from shoestring.market.prices import PriceBook

STARTS, QUICK_STARTS = 30, 3
"""In each market; every workload gets its share."""
SENSITIVITY_STARTS = 12
"""For the thetas between: a plot needs fewer."""
THETAS = tuple(tenth / 10 for tenth in range(1, 11))
QUICK_THETAS = (0.3, SHORT, WHOLE)
QUICK_WORKLOADS = WORKLOADS[:2]
QUICK_MARKETS = ("2016", "2025")


def options() -> argparse.Namespace:
    asked = parser(__doc__ or "")
    add_plot_option(asked, "figures like 7 to 9 of the paper")
    asked.add_argument("--choosing", action="store_true", help="compare what could be the default, in other weeks")
    asked.add_argument("--processes", type=int, default=2, metavar="N", help="studies side by side (default 2)")
    return asked.parse_args()


def main() -> None:
    args = options()
    missing = sorted({market.file for market in MARKETS.values() if not (data_folder() / market.file).exists()})
    if missing:
        print(f"skipped: {', '.join(missing)} not in {data_folder()}; set SHOESTRING_DATA to the folder that has them")
        return
    check_plot(args.plot)
    workloads = QUICK_WORKLOADS if args.quick else WORKLOADS
    tasks = {workload: stretched(curves(workload)) for workload in workloads}
    markets = QUICK_MARKETS if args.quick else tuple(MARKETS)
    books = _books(markets)
    starts = QUICK_STARTS if args.quick else STARTS
    if args.choosing:
        show(Scores(hold(field(PROPOSED, tasks, books, starts, choosing=True), tasks, books, args.processes)))
        return
    bouts = field(CONTESTANTS, tasks, books, starts)
    bouts += sensitivity(tasks, books, QUICK_STARTS if args.quick else SENSITIVITY_STARTS, args.quick)
    outcomes = hold(bouts, tasks, books, args.processes)
    scores = Scores(outcomes)
    show(scores)
    print()
    publish([*promised(scores), *beside(scores, outcomes)], args.json, unprinted=list(details(scores)))
    if args.plot:
        draw(scores, args.plot)


def field(
    contestants: Mapping[str, Contestant],
    tasks: Mapping[str, Task],
    books: Mapping[str, PriceBook],
    starts: int,
    *,
    choosing: bool = False,
) -> list[Bout]:
    """Every contestant in every market, from the same start times. Those with one machine type are compared at theta
    1.0 only, as in the paper."""
    return [
        bout
        for market in map(MARKETS.__getitem__, books)
        for contestant in contestants.values()
        for theta in ((WHOLE,) if contestant.only else (SHORT, WHOLE))
        for bout in _bouts(
            market, contestant, theta, tasks, market.starts(books[market.name], starts, choosing=choosing)
        )
    ]


def sensitivity(tasks: Mapping[str, Task], books: Mapping[str, PriceBook], starts: int, quick: bool) -> list[Bout]:
    """The default at the thetas between the two at which all are compared."""
    market = MARKETS[DRAWN]
    moments = market.starts(books[DRAWN], starts, choosing=False)
    between = [theta for theta in (QUICK_THETAS if quick else THETAS) if theta not in (SHORT, WHOLE)]
    return [bout for theta in between for bout in _bouts(market, CONTESTANTS[DEFAULT], theta, tasks, moments)]


def _bouts(
    market: Market, contestant: Contestant, theta: float, tasks: Mapping[str, Task], starts: Sequence[float]
) -> list[Bout]:
    names = list(tasks)
    return [
        Bout(market, names[number % len(names)], contestant, theta, start, seed=number)
        for number, start in enumerate(starts)
    ]


def _books(names: Sequence[str]) -> dict[str, PriceBook]:
    """Of each market. A recording is read once, however many markets are made of it."""
    read: dict[str, PriceBook] = {}
    for market in map(MARKETS.__getitem__, names):
        if market.file not in read:
            read[market.file] = read_book(market)
    return {name: read[MARKETS[name].file] for name in names}


if __name__ == "__main__":
    began = time.monotonic()
    try:
        main()
    except ShoestringError as error:
        sys.exit(f"{error}{f' ({error.hint})' if error.hint else ''}")
    print(f"({time.monotonic() - began:.0f} s)")
