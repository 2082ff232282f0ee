"""Quality against cost for each method, like the paper's Figure 1, and what the default saves, like its Figure 2."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from benchmarks.plotting import bars
from benchmarks.trimtuner_play import mean_curve
from benchmarks.trimtuner_rows import DEFAULT, Results

COLUMNS = 3
SAVED_AGAINST = ("eic", "eic_usd")


def draw(results: Results, path: Path) -> None:
    """A panel for each table (solid: strict, dashed: Accuracy_C), then one of cost and one of time saved at 90 %."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tables = results.tables
    count = len(tables) + 2
    lines = math.ceil(count / COLUMNS)
    figure, panels = pyplot.subplots(lines, COLUMNS, figsize=(5.2 * COLUMNS, 3.6 * lines), squeeze=False)
    flat = list(panels.flat)
    for panel, table in zip(flat, tables, strict=False):
        _curves(panel, results, table.name, table.limit_usd)
    for panel, axis, what in ((flat[len(tables)], "usd", "cost"), (flat[len(tables) + 1], "seconds", "time")):
        _savings(panel, results, axis, what)
    for panel in flat[count:]:
        panel.remove()
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def _curves(panel: Any, results: Results, table: str, limit_usd: float) -> None:
    from matplotlib import colormaps

    methods = list(dict.fromkeys(method for _, method in results.curves))
    colours = colormaps["tab20"].colors
    for (name, method), curves in results.curves.items():
        if name != table:
            continue
        place = methods.index(method)
        colour = colours[(2 * place) % len(colours) + (2 * place) // len(colours)]  # strong ones first, then pale ones
        for score, style in (("strict", "-"), ("accuracy_c", ":")):
            spent, worth = mean_curve((curve.usd, getattr(curve, score)) for curve in curves)
            label = method if score == "strict" else None
            panel.step(spent / limit_usd, worth, style, where="post", color=colour, label=label, linewidth=1.2)
    panel.set_xscale("log")
    panel.set_ylim(0.5, 1.02)
    panel.set_title(table, fontsize=10)
    panel.set_xlabel("spent, in limits")
    panel.set_ylabel("of the feasible optimum")
    panel.legend(fontsize=6, loc="upper left")  # where nothing is spent yet, no curve is


def _savings(panel: Any, results: Results, axis: str, what: str) -> None:
    methods = [name for name in SAVED_AGAINST if any(method == name for _, method in results.curves)]
    by_name = {table.name: table for table in results.tables}
    names = [table.name for table in results.tables if table.family != "limits"]
    bars(panel, names, methods, lambda method, name: results.saving(by_name[name], method, 0.90, axis)[0])
    panel.axhline(1.0, color="black", linewidth=0.8)
    panel.set_xticks(range(len(names)), [name.rpartition("/")[2] for name in names], rotation=60, fontsize=7)
    panel.set_title(f"{what} of others until 90 %, over that of {DEFAULT}", fontsize=10)
    panel.legend(fontsize=7)
