"""SVG elements as text; everything the user wrote is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

Point = tuple[float, float]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: object) -> str:
    """Text escaped for XML and HTML, also in attributes. Control characters, which neither allows, are replaced."""
    return escape(_NOT_XML.sub("\ufffd", str(text)))


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def tag(name: str, *children: str, **attributes: object) -> str:
    """An element. `class_` is class, `text_anchor` is text-anchor. Children are markup: text goes through `escaped`."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{px(value) if isinstance(value, float) else escaped(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{given}>{''.join(children)}</{name}>" if children else f"<{name}{given}/>"


def label(x: float, y: float, text: object, class_: str = "", anchor: str = "start") -> str:
    return tag("text", escaped(text), x=x, y=y, text_anchor=anchor, **({"class_": class_} if class_ else {}))


def px(value: float) -> str:
    """A tenth of a pixel is precise enough."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def line_path(points: Iterable[Point]) -> str:
    """Straight lines from point to point."""
    return "M" + "L".join(f"{px(x)} {px(y)}" for x, y in points)


def step_path(points: Sequence[Point]) -> str:
    """A step function: level until the next point, then up or down."""
    (x, y), *rest = points
    return f"M{px(x)} {px(y)}" + "".join(f"H{px(x)}V{px(y)}" for x, y in rest)


def box_path(x: float, y: float, width: float, height: float) -> str:
    return f"M{px(x)} {px(y)}h{px(width)}v{px(height)}h{px(-width)}z"


def thin(points: Sequence[Point], column_px: float) -> list[Point]:
    """Fewer points that look the same: of each column of pixels the first, the highest, the lowest and the last.

    `points` go from left to right. A curve keeps its spikes, which every n-th point would not.
    """
    thinned: list[Point] = []
    begin = 0
    while begin < len(points):
        column = points[begin][0] // column_px
        end = begin + 1
        while end < len(points) and points[end][0] // column_px == column:
            end += 1
        among = range(begin, end)
        extremes = {begin, end - 1, min(among, key=lambda i: points[i][1]), max(among, key=lambda i: points[i][1])}
        thinned += [points[i] for i in sorted(extremes)]
        begin = end
    return thinned
