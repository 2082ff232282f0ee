"""Plot of machine lifetimes: the cumulative fraction preempted by each age, empirical and fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoestring.report.plots import axes
from shoestring.report.plots.axes import AxisScale
from shoestring.report.plots.figure import LEFT, STYLE, WIDTH
from shoestring.report.plots.svg import Point, escaped, label, line_path, shortened, step_path, tag, thin

_TOP, _PANEL, _GAP = 70.0, 300.0, 90.0
"""Pixels above the first panel, of each panel, and between two."""
_PLOT_RIGHT = 580.0
"""Names of the lines are to the right of it."""
_LINE, _LONGEST_NAME = 18.0, 26
_COLOURS = ("#0b63ce", "#c0392b", "#2a7f62", "#946600", "#8a4f7d", "#2b9aa8", "#d6409f", "#5d6670")
_THIN, _THICK = "1.2", "1.8"


@dataclass(frozen=True)
class SurvivalLine:
    """A fraction over ages in seconds, from left to right."""

    name: str
    """Empty: it belongs to the named line of the same colour."""
    points: Sequence[Point]
    colour: int | None = None
    """None: the text colour."""
    counted: bool = False
    """An empirical curve is drawn in steps, a fitted one smooth."""
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    name: str
    lines: Sequence[SurvivalLine]


def lifetimes_picture(title: str, panels: Sequence[Panel]) -> str:
    """An SVG file, one panel below the other, like Figures 2 and 3 of SciSpot."""
    height = _TOP + len(panels) * _PANEL + (len(panels) - 1) * _GAP + 50.0
    body = [label(LEFT, 24, title, "name")]
    for index, panel in enumerate(panels):
        body += _panel(panel, _TOP + index * (_PANEL + _GAP))
    return tag(
        "svg",
        tag("title", escaped(title)),
        tag("style", STYLE),
        tag("rect", x=0, y=0, width=WIDTH, height=height, style="fill: var(--paper)"),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
    )


def _panel(panel: Panel, top: float) -> list[str]:
    lines = panel.lines
    end_s = max((line.points[-1][0] for line in lines), default=1.0)
    across, up = AxisScale(0.0, max(1.0, end_s), LEFT, _PLOT_RIGHT), AxisScale(0.0, 1.0, top + _PANEL, top)
    moments, shares = axes.time_ticks(end_s), [0.0, 0.25, 0.5, 0.75, 1.0]
    drawn = [
        axes.left_axis(up, LEFT, _PLOT_RIGHT, shares, [f"{share:.0%}" for share in shares], panel.name),
        axes.bottom_axis(across, top + _PANEL, moments, axes.as_times(moments), "age"),
    ]
    row = 0
    for line in lines:
        points = thin([(across(age), up(share)) for age, share in line.points], 1.0)
        drawn.append(tag("path", d=step_path(points) if line.counted else line_path(points), style=_stroke(line)))
        if line.name:
            y = top + 6 + row * _LINE
            row += 1
            drawn.append(tag("line", x1=_PLOT_RIGHT + 14, x2=_PLOT_RIGHT + 36, y1=y, y2=y, style=_stroke(line)))
            drawn.append(label(_PLOT_RIGHT + 44, y + 4, shortened(line.name, _LONGEST_NAME)))
    return drawn


def _stroke(line: SurvivalLine) -> str:
    colour = "var(--ink)" if line.colour is None else _COLOURS[line.colour % len(_COLOURS)]
    dash = "; stroke-dasharray: 6 4" if line.dashed else ""
    return f"stroke: {colour}; stroke-width: {_THIN if line.dashed else _THICK}{dash}"
