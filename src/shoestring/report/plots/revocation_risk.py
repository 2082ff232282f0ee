"""Plot of a market over time: prices, the maximum price, and the probability of a preemption."""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.report.plots import axes
from shoestring.report.plots.axes import AxisScale
from shoestring.report.plots.figure import LEFT, RIGHT, STYLE, WIDTH
from shoestring.report.plots.svg import Point, escaped, label, line_path, step_path, tag, thin

_HEIGHT = 460.0
_PRICES, _RISK = (60.0, 260.0), (310.0, 420.0)
"""Top and bottom of the two panels."""


def risk_picture(
    title: str,
    since: str,
    prices: Sequence[Point],
    maximum: float,
    chances: Sequence[Point],
    within: str,
) -> str:
    """An SVG file. Points are (seconds since the start, dollars or probability); `since` is the time of the start."""
    end_s = max(1.0, prices[-1][0], chances[-1][0])
    across = AxisScale(0.0, end_s, LEFT, RIGHT)
    lowest, highest = min(price for _, price in prices), max(maximum, *(price for _, price in prices))
    dollars = AxisScale(lowest * 0.9, highest * 1.1, _PRICES[1], _PRICES[0], log=True)
    risk = AxisScale(0.0, 1.0, _RISK[1], _RISK[0])
    moments, levels, shares = axes.time_ticks(end_s), axes.log_ticks(dollars.low, dollars.high), [0.0, 0.5, 1.0]
    drawn = thin([(across(at), dollars(price)) for at, price in prices], 1.0)
    body = [
        label(LEFT, 24, title, "name"),
        axes.left_axis(dollars, LEFT, RIGHT, levels, axes.as_powers(levels), "dollars per hour"),
        tag("path", d=step_path(drawn), class_="going"),
        tag("line", x1=LEFT, x2=RIGHT, y1=dollars(maximum), y2=dollars(maximum), class_="limit"),
        label(RIGHT, dollars(maximum) - 6, f"maximum ${maximum:.4g}", "limit-text", anchor="end"),
        axes.left_axis(risk, LEFT, RIGHT, shares, [f"{share:.0%}" for share in shares], f"preempted within {within}"),
        tag("path", d=line_path(thin([(across(at), risk(chance)) for at, chance in chances], 1.0)), class_="best"),
        axes.bottom_axis(across, _RISK[1], moments, axes.as_times(moments), f"time since {since}"),
    ]
    return tag(
        "svg",
        tag("title", escaped(title)),
        tag("style", STYLE),
        tag("rect", x=0, y=0, width=WIDTH, height=_HEIGHT, style="fill: var(--paper)"),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {_HEIGHT:.0f}",
        role="img",
    )
