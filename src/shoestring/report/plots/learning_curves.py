"""Learning curves: the metric against the step, a line per trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.report.plots import axes
from shoestring.report.plots.axes import LARGEST, AxisScale
from shoestring.report.plots.figure import LEFT, RIGHT, count, figure, legend, no_figure
from shoestring.report.plots.svg import Point, escaped, line_path, shortened, tag, thin
from shoestring.report.trials import show_config
from shoestring.units import show_number

BEST_SHOWN, OTHERS_SHOWN = 20, 40
"""More lines could not be told apart, and the page would be too large to send."""
_TOP, _BOTTOM, _HEIGHT = 30.0, 330.0, 370.0
_COLUMN_PX = 5.0
_HEADING = "Learning curves"
_STANDING = {"finished": "going", "running": "going", "waiting": "going"}
_LEGEND = {"going": "finished or active", "early": "pruned, paused or failed"}


@dataclass(frozen=True, slots=True)
class Span:
    """The range of a scale."""

    low: float
    high: float
    log: bool
    cut: bool
    """Do values lie beyond it? A trial that diverges must not flatten all others."""


def learning_curves(spec: RunSpec, jobs: Iterable[Job], best: Job | None) -> str:
    metric = spec.metric or "value"
    reporting = [job for job in jobs if job.values]
    plottable = [job for job in reporting if any(map(_drawable, job.values))]
    if not plottable:
        kind = "number for" if reporting else "value of"
        return no_figure("curves", _HEADING, f"No trial has reported a {kind} {metric} yet.")
    chosen = choose(spec, plottable)
    span = span_of([value for job in chosen for value in job.values if _drawable(value)], spec)
    first = min(job.steps[0] for job in chosen)
    last = max(job.steps[-1] for job in chosen)
    across = AxisScale(first, last, LEFT, RIGHT) if last > first else AxisScale(first - 1, first + 1, LEFT, RIGHT)
    up = AxisScale(span.low, span.high, _BOTTOM, _TOP, span.log)
    best = next((job for job in chosen if job is best), None)
    lines = [_curve(spec, job, "best" if job is best else _class(job), across, up) for job in _best_last(chosen, best)]
    window = {"x": LEFT - 6, "y": _TOP, "width": RIGHT - LEFT + 12, "height": _BOTTOM - _TOP}
    view_box = " ".join(f"{edge:.0f}" for edge in window.values())
    body = [*_axes(metric, across, up), tag("svg", *lines, **window, viewBox=view_box)]
    best_text = [] if best is None else [f"best: trial {best.number}, {metric} {show_number(best.best)}"]
    kinds = {_class(job) for job in chosen if job is not best}
    keys = [("line", "best", text) for text in best_text] + [
        ("line", kind, text) for kind, text in _LEGEND.items() if kind in kinds
    ]
    caption = _omitted(len(reporting), len(plottable), len(chosen), metric, span)
    description = ". ".join([f"{metric} against step for {count(len(chosen), 'trial')}", *best_text, caption])
    return figure("curves", _HEADING, description, _HEIGHT, body, legend(keys), caption)


def choose(spec: RunSpec, jobs: Sequence[Job]) -> list[Job]:
    """All; of very many, the best ones and an even sample of the others."""
    if len(jobs) <= BEST_SHOWN + OTHERS_SHOWN:
        return list(jobs)
    ranked = sorted(jobs, key=lambda job: spec.rank(job.best))
    others = ranked[BEST_SHOWN:]
    return ranked[:BEST_SHOWN] + [others[i * len(others) // OTHERS_SHOWN] for i in range(OTHERS_SHOWN)]


def span_of(values: Sequence[float], spec: RunSpec) -> Span:
    """Log where values are positive and span more than two decades; cut where a few are outliers on the bad side."""
    shown = _without_outliers(values, spec)
    low, high = min(shown), max(shown)
    cut = len(shown) < len(values)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1 / LARGEST):
        margin = 0.1 * abs(high) if abs(high) > 1 / LARGEST else 1.0
        return Span(low - margin, high + margin, log=False, cut=cut)
    if not _spans_decades(low, high):
        margin = 0.04 * (high - low)
        return Span(low - margin, high + margin, log=False, cut=cut)
    margin = 0.04 * (math.log10(high) - math.log10(low))
    edges = (math.log10(low) - margin, math.log10(high) + margin)
    return Span(10.0 ** max(edges[0], -307.0), 10.0 ** min(edges[1], 307.0), log=True, cut=cut)


def _without_outliers(values: Sequence[float], spec: RunSpec) -> Sequence[float]:
    """All, unless the worst is much further from the 95th percentile than that is from the best."""
    log = _spans_decades(min(values), max(values))
    sign = 1.0 if spec.direction == "minimize" else -1.0
    badness = [sign * (math.log10(value) if log else value) for value in values]
    ranked = sorted(badness)
    best, usual, worst = ranked[0], ranked[int(0.95 * (len(ranked) - 1))], ranked[-1]
    width = usual - best
    if width <= 0 or worst - usual <= 4 * width:
        return values
    return [value for value, bad in zip(values, badness, strict=True) if bad <= usual + width]


def _spans_decades(low: float, high: float) -> bool:
    return low > 1 / LARGEST and high / low > 100


def _drawable(value: float) -> bool:
    return abs(value) < LARGEST  # false for NaN


def _class(job: Job) -> str:
    return _STANDING.get(job.status, "early")


def _best_last(jobs: Sequence[Job], best: Job | None) -> list[Job]:
    """Later ones are drawn on top."""
    return sorted(jobs, key=lambda job: (job is best, _class(job) == "going"))


def _axes(metric: str, across: AxisScale, up: AxisScale) -> Iterator[str]:
    at = axes.log_ticks(up.low, up.high) if up.log else axes.ticks(up.low, up.high)
    name = f"{shortened(metric, 60)} (log scale)" if up.log else shortened(metric, 60)
    yield axes.left_axis(up, LEFT, RIGHT, at, axes.as_powers(at) if up.log else axes.as_numbers(at), name)
    steps = axes.ticks(across.low, across.high, 8, whole=True)
    yield axes.bottom_axis(across, _BOTTOM, steps, [f"{step:,.0f}" for step in steps], "step")


def _curve(spec: RunSpec, job: Job, class_: str, across: AxisScale, up: AxisScale) -> str:
    title = f"trial {job.number}, {job.status}: {spec.metric} {show_number(job.best)}, {show_config(job.config)}"
    runs = [thin(run, _COLUMN_PX) for run in _unbroken(job, across, up)]
    dots = [run[0] for run in runs if len(run) == 1]
    if class_ == "best" and job.best in job.values:
        dots.append((across(job.steps[job.values.index(job.best)]), up(job.best)))
    path = "".join(line_path(run) for run in runs if len(run) > 1)
    radius = 4.5 if class_ == "best" else 2.2
    marks = [tag("path", d=path, class_=class_)] if path else []
    marks += [tag("circle", cx=x, cy=y, r=radius, class_=f"{class_} dot") for x, y in dots]
    return tag("g", tag("title", escaped(shortened(title, 240))), *marks)


def _unbroken(job: Job, across: AxisScale, up: AxisScale) -> Iterator[list[Point]]:
    """The curve in pixels, in pieces: NaN leaves a gap."""
    piece: list[Point] = []
    for step, value in zip(job.steps, job.values, strict=True):
        if _drawable(value):
            piece.append((across(step), up(value)))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _omitted(reporting: int, plottable: int, shown: int, metric: str, span: Span) -> str:
    notes = []
    if shown < plottable:
        notes.append(f"{shown} of {plottable:,} trials: the {BEST_SHOWN} best, and an even sample of the others")
    if plottable < reporting:
        notes.append(f"{count(reporting - plottable, 'trial')} never reported a number for {metric}")
    if span.cut:
        notes.append(f"a few values of {metric} are outliers and are cut off")
    text = "; ".join(notes)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
