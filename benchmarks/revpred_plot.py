"""A plot like the paper's Figure 10, accuracy and F1 of predictors, with what they leave out: Brier score, ranking
and calibration. All bars are averages over the windows, on the markets that have networks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.plotting import bars
from shoestring.models.revocation.scores import RevocationScores

PANELS = (
    ("accuracy", "accuracy"),
    ("f1", "F1"),
    ("brier_ratio", "Brier score, base rate = 1: less is better"),
    ("auc", "AUC: a coin has 0.5"),
    ("calibration_error", "calibration error: less is better"),
)
NAMES = {"absolute": "as printed", "relative": "relative", "on_demand": "on-demand price", "bid": "refund_seeking"}
"""Labels of the kinds of maximum prices."""


def brier_ratio(scores: RevocationScores) -> float:
    """The Brier score relative to that of always predicting the base rate."""
    return scores.brier / scores.brier_of_base_rate if scores.brier_of_base_rate > 0 else float("nan")


class Judged(Protocol):
    """One model in one window, for one kind of maximum price."""

    @property
    def where(self) -> str: ...
    @property
    def manner(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def scores(self) -> RevocationScores: ...


def draw(found: Sequence[Judged], path: Path) -> None:
    from matplotlib.figure import Figure

    cells = [cell for cell in found if cell.where == "busy"]
    models = list(dict.fromkeys(cell.model for cell in cells))
    manners = list(dict.fromkeys(cell.manner for cell in cells))

    def mean(what: str, model: str, manner: str) -> float:
        return statistics.fmean(
            _score(cell.scores, what) for cell in cells if (cell.model, cell.manner) == (model, manner)
        )

    figure = Figure(figsize=(15, 8), layout="constrained")
    *panels, text = figure.subplots(2, 3).flat
    for panel, (what, title) in zip(panels, PANELS, strict=True):
        bars(panel, manners, models, lambda model, manner, what=what: mean(what, model, manner))
        panel.set_xticks(range(len(manners)), [NAMES[manner] for manner in manners])
        panel.set_title(title)
    panels[2].set_yscale("log")
    panels[2].axhline(1.0, color="black", linewidth=0.8)
    panels[3].axhline(0.5, color="black", linewidth=0.8)
    panels[3].set_ylim(0.0, 1.0)
    text.axis("off")
    text.legend(*panels[0].get_legend_handles_labels(), loc="upper left", title="predictors")
    rates = [
        f"{NAMES[manner]}: {statistics.fmean(c.scores.base_rate for c in cells if c.manner == manner):.1%} preempted"
        for manner in manners
    ]
    text.text(0.0, 0.0, "\n".join(["maximum prices, and how many go within the hour:", *rates]), va="bottom")
    figure.savefig(path)


def _score(scores: RevocationScores, what: str) -> float:
    return brier_ratio(scores) if what == "brier_ratio" else float(getattr(scores, what))
