"""Plots like the paper's Figures 7, 8 and 9, with our studies: one PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.plotting import bars
from benchmarks.spottune_contestants import (
    AS_PRINTED,
    CHEAPEST_SPOT,
    DEFAULT,
    FASTEST_SPOT,
    ORACLE,
    PLAIN,
)
from benchmarks.spottune_rows import SHORT, WHOLE, Scores

MARKET = "2016"
COMPARED = ((DEFAULT, SHORT), (DEFAULT, WHOLE), (AS_PRINTED, SHORT), (CHEAPEST_SPOT, WHOLE), (FASTEST_SPOT, WHOLE))
REFUNDED = (DEFAULT, PLAIN, AS_PRINTED, ORACLE)
Line = tuple[str, float]


def draw(scores: Scores, path: Path) -> None:
    """Figure 7 above, Figure 8 below it, Figure 9 and the same money in every market at the bottom."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 12), layout="constrained")
    panels = figure.subplots(3, 3)
    for panel, (what, of) in zip(
        panels[0], (("cost, $", scores.usd), ("JCT, h", scores.hours), ("PCR", scores.pcr)), strict=True
    ):
        _bars(panel, scores.tasks, COMPARED, lambda line, task, of=of: of(MARKET, *line, task))
        panel.set_title(f"{what} ({MARKET} prices)")
    panels[0][2].set_yscale("log")
    panels[0][0].legend(fontsize="small")
    _sensitivity(panels[1], scores)
    _bars(
        panels[2][0], scores.tasks, [(name, SHORT) for name in REFUNDED], lambda x, task: scores.free(MARKET, *x, task)
    )
    panels[2][0].set_title(f"share of steps on refunded machines ({MARKET})")
    panels[2][0].legend(fontsize="small")
    for panel, theta in zip(panels[2][1:], (SHORT, WHOLE), strict=True):
        _bars(panel, scores.markets, [(name, theta) for name in REFUNDED], lambda x, market: scores.usd(market, *x))
        panel.set_title(f"cost, $, theta {theta}")
    figure.savefig(path)


def _sensitivity(panels: Sequence[Any], scores: Scores) -> None:
    thetas = scores.thetas(MARKET)
    for panel, (what, of) in zip(panels, (("cost, $", scores.usd), ("JCT, h", scores.hours)), strict=False):
        for task in scores.tasks:
            panel.plot(thetas, [of(MARKET, DEFAULT, theta, task) for theta in thetas], marker=".", label=task)
        panel.set_title(f"{what}, by theta ({DEFAULT}, {MARKET})")
        panel.set_xlabel("theta")
    panels[0].legend(fontsize="small")
    for what, right in (
        ("best trial expected to be best", lambda outcome: outcome.best_first),
        ("best trial trained to the end", lambda outcome: outcome.best_kept),
    ):
        panels[2].plot(thetas, [scores.mean(right, MARKET, DEFAULT, theta) for theta in thetas], marker=".", label=what)
    panels[2].set(title="share of studies, by theta", xlabel="theta", ylim=(0, 1.05))
    panels[2].legend(fontsize="small")


def _bars(panel: Any, groups: Sequence[str], lines: Sequence[Line], height: Callable[[Line, str], float]) -> None:
    named = {f"{name}, {theta}": (name, theta) for name, theta in lines}
    bars(panel, groups, list(named), lambda line, group: height(named[line], group))
