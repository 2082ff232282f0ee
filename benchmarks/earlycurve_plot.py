"""A plot like the paper's Figure 11: actual curves and predictions from their first part, and error, top-1 and top-3 by
theta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import earlycurve_network as network
from benchmarks.earlycurve_groups import Group
from benchmarks.rows import Row
from shoestring.kernel.types import Direction
from shoestring.models.curves.registry import CURVE_MODELS, DEFAULT

FORETOLD = (DEFAULT, "earlycurve", "slaq", "last_value")
SHARES = (("error", "mean error of the end"), ("top1", "the best is foretold to be it"), ("top3", "it is in the top 3"))


def draw(
    found: Mapping[tuple[str, str, float], Row],
    groups: Sequence[Group],
    falling: Sequence[network.Curve],
    shown: float,
    path: Path,
) -> None:
    """`found`: by model, figure and theta. `falling`: networks whose learning rate falls. `shown`: of a curve."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 9), layout="constrained")
    above, below = figure.subplots(2, 3)
    _foretold(above[0], falling[0].values, "minimize", network.FALLS, shown)
    above[0].set_title("a network whose learning rate falls in steps")
    firsts = {group.source: group for group in reversed(groups)}
    for panel, (source, group) in zip(above[1:], firsts.items(), strict=False):
        best = int(group.finals.argmin())
        _foretold(panel, group.curves[best].tolist(), group.direction, group.boundaries[best], shown)
        panel.set_title(f"{source}: the best of a group")
    above[0].legend(fontsize="small")
    thetas = sorted({theta for _, _, theta in found})
    for panel, (what, title) in zip(below, SHARES, strict=True):
        for name in CURVE_MODELS if found else ():
            panel.plot(thetas, [found[name, what, theta].value for theta in thetas], marker=".", label=name)
        panel.set(title=title, xlabel="theta: the part of the steps that is shown")
    if found:
        below[0].legend(fontsize="small")
    for panel in (*above[1 + len(firsts) :], *(() if found else below)):
        panel.axis("off")
    figure.savefig(path)


def _foretold(panel: Any, values: Sequence[float], direction: Direction, stages: Sequence[int], shown: float) -> None:
    """The curve, and from theta on what each model predicts, the default with 1.96 deviations."""
    known = max(1, round(shown * len(values)))
    steps, later = range(1, known + 1), range(known + 1, len(values) + 1)
    panel.plot(range(1, len(values) + 1), values, color="black", linewidth=1.0, label="as it was")
    panel.axvline(known, color="grey", linewidth=0.8, linestyle=":")
    for name in FORETOLD:
        told = [CURVE_MODELS[name].predict(steps, values[:known], step, direction, stages) for step in later]
        (line,) = panel.plot(later, [outlook.mean for outlook in told], linestyle="--", label=name)
        if name == DEFAULT:
            low, high = ([mean + side * 1.96 * sd for mean, sd in told] for side in (-1, 1))
            panel.fill_between(later, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    panel.set_xlabel("step")
