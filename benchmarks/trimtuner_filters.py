"""Filters, which select the candidates for the acquisition function: TrimTuner's on its RNN table, like Figures 3 and 4
and Table IV.

    python -m benchmarks.trimtuner_filters [--quick] [--json FILE] [--plot FILE]

The corrected entropy search by Gaussian processes with every filter at 10 %, and by trees with CEA at several shares.
Counted are the cost until the mean of Accuracy_C stays above 90 % of the feasible optimum, in limits, and the CPU time
of an ask.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.datasets import announce
from benchmarks.plotting import add_plot_option, check_plot
from benchmarks.rows import Row, parser, publish
from benchmarks.trimtuner import BUDGET_LIMITS, PAPERS_EVALUATIONS, PROCESSES
from benchmarks.trimtuner_contestants import Ours, one_thread
from benchmarks.trimtuner_play import Curve, mean_curve, play, spent_until
from benchmarks.trimtuner_tables import Table, load
from shoestring.errors import DataError
from shoestring.optimizer.filters.cmaes import ByCmaes
from shoestring.optimizer.filters.direct import ByDirect
from shoestring.optimizer.filters.filters import ByCea, ByRandom, NoFilter
from shoestring.optimizer.methods.entropy import TrimTunerGp
from shoestring.optimizer.methods.protocol import Method
from shoestring.optimizer.methods.tree_entropy import TrimTunerDt

SEEDS, QUICK_SEEDS, QUICK_EVALUATIONS = 10, 1, 12
LEVEL = 0.90
COMPARED: Mapping[str, Callable[[], Method]] = {
    "gp_no_filter": lambda: TrimTunerGp(NoFilter()),
    "gp_cea_10": lambda: TrimTunerGp(ByCea(0.10)),
    "gp_random_10": lambda: TrimTunerGp(ByRandom(0.10)),
    "gp_cmaes_10": lambda: TrimTunerGp(ByCmaes(0.10)),
    "gp_direct_10": lambda: TrimTunerGp(ByDirect(0.10)),
    "dt_no_filter": lambda: TrimTunerDt(NoFilter()),
    "dt_cea_1": lambda: TrimTunerDt(ByCea(0.01)),
    "dt_cea_10": lambda: TrimTunerDt(ByCea(0.10)),
    "dt_cea_20": lambda: TrimTunerDt(ByCea(0.20)),
}
Task = tuple[Table, str, int, int]
"""The table, the contestant, the seed, and the number of evaluations."""
Run = tuple[Curve, float]
"""With the CPU seconds of an evaluation, nearly all of which is the ask."""


def played(task: Task) -> Run:
    table, name, seed, most = task
    player = Ours(table, seed, COMPARED[name]())
    began = time.process_time()
    curve = play(table, player, BUDGET_LIMITS * table.limit_usd, most)
    return curve, (time.process_time() - began) / len(curve.usd)


def main() -> None:
    asked = parser(__doc__.partition("\n\n")[0])
    add_plot_option(asked, "quality against cost for each filter and share")
    args = asked.parse_args()
    check_plot(args.plot)
    try:
        table = next(table for table in load() if table.name == "rnn")
    except DataError as missing:
        print(f"skipped: {missing}")
        return
    announce("trimtuner", [table.name])
    seeds, most = (QUICK_SEEDS, QUICK_EVALUATIONS) if args.quick else (SEEDS, PAPERS_EVALUATIONS)
    work = [(table, name, seed, most) for name in COMPARED for seed in range(seeds)]
    with ProcessPoolExecutor(PROCESSES, initializer=one_thread) as pool:
        done = list(pool.map(played, work))
    found = {name: done[at * seeds : (at + 1) * seeds] for at, name in enumerate(COMPARED)}
    publish([row for name, runs in found.items() for row in _rows(name, runs, table)], args.json)
    if args.plot is not None:
        _draw({name: [curve for curve, _ in runs] for name, runs in found.items()}, table.limit_usd, args.plot)


def _rows(name: str, runs: Sequence[Run], table: Table) -> list[Row]:
    cost = spent_until([(curve.usd, curve.accuracy_c) for curve, _ in runs], LEVEL) / table.limit_usd
    ask_ms = 1e3 * sorted(ask_s for _, ask_s in runs)[len(runs) // 2]
    told = f"until 90 % by Accuracy_C, mean of {len(runs)} seeds"
    told = f"{told}; -1: never" if math.isinf(cost) else told
    return [
        Row(f"{name}_cost90", -1.0 if math.isinf(cost) else cost, "limits", told),
        Row(f"{name}_ask_ms", ask_ms, "ms", "CPU, with the recommendation after each evaluation"),
    ]


def _draw(found: Mapping[str, Sequence[Curve]], limit_usd: float, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4))
    for place, (model, title) in enumerate((("gp", "filters at 10 %, Gaussian processes"), ("dt", "CEA, trees")), 1):
        panel = figure.add_subplot(1, 2, place)
        for name, curves in found.items():
            if name.startswith(model):
                spent, worth = mean_curve((curve.usd, curve.accuracy_c) for curve in curves)
                panel.step(spent / limit_usd, worth, where="post", label=name.removeprefix(f"{model}_"), linewidth=1.2)
        panel.set_xscale("log")
        panel.set_ylim(0.5, 1.05)
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("spent, in limits")
        panel.set_ylabel("Accuracy_C, of the feasible optimum")
        panel.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
