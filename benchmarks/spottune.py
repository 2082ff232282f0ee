"""What a study costs: SpotTune on recorded spot prices, against single machine types, cheapest steps and an oracle.

    python -m benchmarks.spottune [--quick] [--json FILE] [--plot FILE] [--choosing] [--held-out FOLDER]

Studies of sixteen trials, whose curves were trained for real, run through the whole product at start times spread over
the weeks of each recording that are for reporting, the six workloads in turn. `--choosing` compares candidates for the
default instead, in the weeks for choosing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes side by side, not threads: before NumPy is loaded

from benchmarks import datasets
from benchmarks.plotting import add_plot_option, check_plot
from benchmarks.rows import parser, publish
from benchmarks.spottune_arena import Bout, hold
from benchmarks.spottune_contestants import CONTESTANTS, DEFAULT, PROPOSED, Contestant
from benchmarks.spottune_market import MARKETS, Market, markets, read_book
from benchmarks.spottune_plot import MARKET as DRAWN
from benchmarks.spottune_plot import draw
from benchmarks.spottune_rows import SHORT, WHOLE, Scores, beside, details, promised, show
from benchmarks.spottune_workloads import Task, stretched
from benchmarks.workload_curves import WORKLOADS, curves
from shoestring.errors import ShoestringError
from shoestring.market.prices import PriceBook, utc

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
    datasets.add_held_out_option(asked)
    asked.add_argument("--markets", metavar="A,B", help=f"only these of {', '.join(MARKETS)}, and the rows about them")
    asked.add_argument("--processes", type=int, default=2, metavar="N", help="studies side by side (default 2)")
    return asked.parse_args()


def main() -> None:
    args = options()
    datasets.refuse_choosing_on_held_out(args.choosing)
    known = markets()
    missing = sorted({str(market.path) for market in known.values() if not market.path.exists()})
    if missing:
        print(f"skipped: {', '.join(missing)} missing; set SHOESTRING_DATA to the folder that has them")
        return
    check_plot(args.plot)
    workloads = QUICK_WORKLOADS if args.quick else WORKLOADS
    tasks = {workload: stretched(curves(workload)) for workload in workloads}
    used = {name: known[name] for name in _asked(args.markets, known, args.quick)}
    books = _books(used)
    role: datasets.Role = "choosing" if args.choosing else "reporting"
    for name, market in used.items():
        weeks = [f"{name} {utc(begin)[:10]} to {utc(end)[:10]}" for begin, end in market.windows(books[name], role)]
        datasets.announce(market.recording, weeks, role)
    starts = QUICK_STARTS if args.quick else STARTS
    if args.choosing:
        show(Scores(hold(field(PROPOSED, used, tasks, books, starts, choosing=True), tasks, books, args.processes)))
        return
    bouts = field(CONTESTANTS, used, tasks, books, starts)
    if args.plot and DRAWN in used:
        bouts += sensitivity(tasks, books, QUICK_STARTS if args.quick else SENSITIVITY_STARTS, args.quick)
    outcomes = hold(bouts, tasks, books, args.processes)
    scores = Scores(outcomes)
    show(scores)
    print()
    publish(
        [*promised(scores, used.values()), *beside(scores, outcomes, used.values())],
        args.json,
        unprinted=list(details(scores)),
    )
    if args.plot and DRAWN in used:
        draw(scores, args.plot)


def _asked(markets: str | None, known: Mapping[str, Market], quick: bool) -> Sequence[str]:
    usual = QUICK_MARKETS if quick and datasets.held_out() is None else list(known)
    asked = usual if markets is None else markets.split(",")
    if unknown := [name for name in asked if name not in known]:
        raise SystemExit(f"--markets {unknown[0]}: no such market; known: {', '.join(known)}")
    return asked


def field(
    contestants: Mapping[str, Contestant],
    known: Mapping[str, Market],
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
        for market in known.values()
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


def _books(known: Mapping[str, Market]) -> dict[str, PriceBook]:
    """Of each market. A recording is read once, however many markets are made of it."""
    read: dict[str, PriceBook] = {}
    for market in known.values():
        if market.recording not in read:
            read[market.recording] = read_book(market)
    return {name: read[market.recording] for name, market in known.items()}


if __name__ == "__main__":
    began = time.monotonic()
    try:
        main()
    except ShoestringError as error:
        sys.exit(f"{error}{f' ({error.hint})' if error.hint else ''}")
    print(f"({time.monotonic() - began:.0f} s)")
