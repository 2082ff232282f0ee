"""The best model within a deadline and a budget: normalized regret of every elastic policy and of baselines with enough
resources.

Each run is a simulated study on a table of recorded learning curves, through the whole product. A cell is a deadline
in minutes and a budget in slot-minutes. Regret is 0 at the best value of the table and 1 at what its best quarter
of configurations reach. Constants were tuned on four tasks (two of TaskSet, two of the LCBench surrogate); the rows are
about the others. LCBench's curves are those of a surrogate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import tables
from benchmarks.datasets import add_held_out_option, announce, refuse_choosing_on_held_out, reported_folder
from benchmarks.rows import parser, publish
from benchmarks.seer_arena import Outcome, Setting
from benchmarks.seer_contestants import CONTESTANTS
from benchmarks.seer_field import check, entries, hold
from benchmarks.seer_market import CELLS, Cell
from benchmarks.seer_plot import picture
from benchmarks.seer_rows import details, promised, starving
from benchmarks.seer_scores import Scores
from benchmarks.seer_spot import spot_rows
from benchmarks.seer_tuning import candidates
from shoestring.errors import ShoestringError

SEEDS, QUICK_SEEDS = 20, 2
QUICK_CELLS = (Cell(15, 60), Cell(30, 240))
QUICK_EVERY = 3
"""Of the tasks."""


def options() -> argparse.Namespace:
    asked = parser(__doc__ or "")
    asked.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the slots that ASHA, HyperSched and SEER gave to trials over time, as SVG",
    )
    add_held_out_option(asked)
    asked.add_argument("--recipes", metavar="A,B", help=f"only these of {', '.join(CONTESTANTS)}")
    asked.add_argument("--cells", metavar="M:B,..", help=f"instead of {', '.join(map(str, CELLS))}")
    asked.add_argument("--tasks", metavar="WHICH", help='"report" (default), "choose", or names: taskset/..,nlp/..')
    asked.add_argument("--seeds", type=int, metavar="N", help=f"runs of each kind (default {SEEDS})")
    asked.add_argument("--processes", type=int, default=2, metavar="N", help="runs side by side (default 2)")
    asked.add_argument("--tune", action="store_true", help="instead, show how ASHA + TPE was tuned")
    return asked.parse_args()


def main() -> None:
    args = options()
    if not reported_folder().is_dir():
        print(f"skipped: no recorded curves in {reported_folder()}; set SHOESTRING_DATA to the folder that has them")
        return
    refuse_choosing_on_held_out(args.tune or args.tasks == "choose")
    names = _tasks("choose" if args.tune else args.tasks, args.quick)
    cells = _cells(args.cells) if args.cells else list(QUICK_CELLS if args.quick else CELLS)
    settings = candidates(cells) if args.tune else _settings(args.recipes, cells)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes side by side, not threads: before numpy is loaded
    tasks = tables.load(names)
    announce("curves", names, "choosing" if set(names) <= set(tables.CHOOSING) else "reporting")
    check(tasks[names[0]], settings)
    seeds = args.seeds or (QUICK_SEEDS if args.quick else SEEDS)
    outcomes = hold(entries(names, cells, settings, seeds), tasks, args.processes)
    scores = Scores(outcomes)
    show(outcomes, scores, list(settings))
    if args.tune:
        return
    on_spot, spot_outcomes = spot_rows(scores, tasks, max(1, seeds // 2), args.processes)
    rows = [*promised(scores, [*outcomes, *spot_outcomes]), *on_spot]
    print()
    publish(rows, args.json, unprinted=list(details(scores, outcomes)))
    if args.plot:
        args.plot.write_text(picture())
    hungry = starving(outcomes)
    if hungry:
        raise SystemExit("not well fed:\n  " + "\n  ".join(hungry))


def _tasks(asked: str | None, quick: bool) -> tuple[str, ...]:
    if asked == "choose":
        return tables.CHOOSING
    if asked in (None, "report"):
        return tables.reporting()[:: QUICK_EVERY if quick else 1]
    return tuple(asked.split(","))


def _cells(asked: str) -> list[Cell]:
    try:
        return [Cell(*map(int, part.split(":"))) for part in asked.split(",")]
    except (TypeError, ValueError):
        raise SystemExit(f"--cells {asked}: write minutes:slot-minutes, e.g. 15:60,30:240") from None


def _settings(asked: str | None, cells: Sequence[Cell]) -> dict[str, dict[Cell, Setting]]:
    names = asked.split(",") if asked else list(CONTESTANTS)
    for name in names:
        if name not in CONTESTANTS:
            raise SystemExit(f"--recipes {name}: nobody of that name competes; known: {', '.join(CONTESTANTS)}")
    return {name: {cell: CONTESTANTS[name].setting(cell) for cell in cells} for name in names}


def show(outcomes: Sequence[Outcome], scores: Scores, names: Sequence[str]) -> None:
    """Mean regret per cell and per family, and how the clusters were used."""
    columns = [*map(str, scores.cells), "mean", *scores.families]
    print(f"{'mean regret':<27}" + "".join(f"{column:>8}" for column in columns) + "   spent  busy model  ms/run")
    for name in names:
        regrets = [scores.of_cell(name, cell).value for cell in scores.cells]
        regrets += [scores.of_all(name).value, *(scores.of_family(name, family) for family in scores.families)]
        mine = [outcome for outcome in outcomes if outcome.contestant == name]
        shares = [statistics.fmean(getattr(run, what) for run in mine) for what in ("spent_share", "busy", "modelled")]
        ms = 1000 * statistics.fmean(run.cpu_s for run in mine)
        print(
            f"{name:<27}"
            + "".join(f"{regret:>8.3f}" for regret in regrets)
            + "  "
            + "".join(f"{share:>6.2f}" for share in shares)
            + f"{ms:>8.0f}"
        )
    print(f"({len(outcomes)} runs, of which {sum(run.overran for run in outcomes)} overran budget or deadline)")


if __name__ == "__main__":
    began = time.monotonic()
    try:
        main()
    except ShoestringError as error:
        sys.exit(f"{error}{f' ({error.hint})' if error.hint else ''}")
    print(f"({time.monotonic() - began:.0f} s)")
