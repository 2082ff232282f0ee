"""A figure of the page: heading, legend, drawing, and a caption that says what is omitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoestring.report.plots.svg import escaped, tag

WIDTH = 800.0
LEFT, RIGHT = 100.0, 780.0
"""The same edges in all figures, so that their time axes align."""

STYLE = """
:root { --ink: #22262b; --soft: #5d6670; --line: #b9c0c7; --hair: #e9ecef; --paper: #fff; --panel: #f6f7f8;
  --best: #0b63ce; --going: #7b8794; --early: #9aa5b1; --bad: #c0392b; --limit: #b3541e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --soft: #9ba5af; --line: #4c545d; --hair: #2a2f35; --paper: #15181b; --panel: #1e2226;
    --best: #6db3ff; --going: #8d99a6; --early: #7a8591; --bad: #ff7b6b; --limit: #e9a06c } }
figure { margin: 0; overflow-x: auto }
figure > svg { display: block; width: 100%; min-width: 36em; height: auto; margin: .6em 0 .3em }
figcaption { color: var(--soft); font-size: 13px }
.legend { color: var(--soft); font-size: 13px; margin: 0 } .legend span { margin-right: 1.4em; white-space: nowrap }
.legend svg { display: inline-block; width: 22px; height: 10px; margin: 0 .4em 0 0 }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft) } svg .name { fill: var(--ink) }
svg .value { fill: var(--ink); font-weight: 600 } svg .limit-text { fill: var(--limit) }
svg :is(.value, .limit-text) { paint-order: stroke; stroke: var(--paper); stroke-width: 5px; stroke-linejoin: round }
svg .axis { stroke: var(--line) } svg .grid { stroke: var(--hair) } svg path, svg .dot { fill: none }
svg .limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 5 4 }
.early { stroke: var(--early); opacity: .5 } .going { stroke: var(--going); stroke-width: 1.3; opacity: .85 }
.best, .money { stroke: var(--best); stroke-width: 2.4; stroke-linejoin: round }
svg .early.dot { fill: var(--early); stroke: none } svg .going.dot { fill: var(--going); stroke: none }
svg .best.dot { fill: var(--best); stroke: var(--paper); stroke-width: 1.5 }
.held { stroke: var(--going); stroke-width: 1.5 } svg .held-area { fill: var(--going); opacity: .16 }
svg .taken { fill: var(--bad); stroke: var(--paper) }
svg .bar { opacity: .3 } svg .inside { fill: #fff; font-size: 10px }
svg .released { fill: #2a7f62 } svg .revoked { fill: #b83a26 } svg .expired { fill: #946600 }
svg .lost { fill: #8a4f7d } svg .open { fill: #2b6cb0 }
"""


def figure(
    name: str, heading: str, description: str, height: float, body: Iterable[str], legend: str = "", caption: str = ""
) -> str:
    """`name` is unique on the page. The heading is also the drawing's title, for screen readers."""
    drawing = tag(
        "svg",
        tag("title", escaped(heading), id=f"{name}-title"),
        tag("desc", escaped(description), id=f"{name}-desc"),
        *body,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )
    parts = [f'<figure id="{name}"><h2>{escaped(heading)}</h2>']
    parts += [f'<p class="legend">{legend}</p>'] if legend else []
    parts += [drawing, f"<figcaption>{escaped(caption)}</figcaption>" if caption else "", "</figure>"]
    return "".join(parts)


def no_figure(name: str, heading: str, reason: str) -> str:
    return f'<figure id="{name}"><h2>{escaped(heading)}</h2><figcaption>{escaped(reason)}</figcaption></figure>'


def legend(entries: Sequence[tuple[str, str, str]]) -> str:
    """Entries are a kind of mark ("line", "dot" or "box"), its class, and what it stands for."""
    return "".join(f"<span>{_swatch(kind, class_)}{escaped(text)}</span>" for kind, class_, text in entries)


def _swatch(kind: str, class_: str) -> str:
    if kind == "line":
        mark = tag("line", x1=1, x2=21, y1=5, y2=5, class_=class_)
    elif kind == "dot":
        mark = tag("circle", cx=11, cy=5, r=4, class_=class_)
    else:
        mark = tag("rect", x=1, y=0, width=20, height=10, class_=class_)
    return tag("svg", mark, viewBox="0 0 22 10", aria_hidden="true")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
