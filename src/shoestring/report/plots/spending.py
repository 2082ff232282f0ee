"""Cost and machines over time: dollars billed, machines held, and preemptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from shoestring.report.plots import axes
from shoestring.report.plots.axes import AxisScale
from shoestring.report.plots.figure import LEFT, RIGHT, count, figure, legend, no_figure
from shoestring.report.plots.journal_pass import Chronicle
from shoestring.report.plots.svg import Point, escaped, label, px, step_path, tag, thin
from shoestring.units import show_duration, show_usd

_HEADING = "Cost and machines over time"
_MONEY_TOP, _MONEY_BOTTOM = 30.0, 230.0
_HELD_HEIGHT = 80.0
_DOT_PX = 7.0
_BUDGET_SHOWN, _DEADLINE_SHOWN = 4.0, 2.0
"""A limit of more than so many times the use is named at the edge: drawn to scale, it would squeeze everything else
into a corner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimits:
    budget_usd: float
    deadline_s: float


def time_scale(chronicle: Chronicle, deadline_s: float) -> AxisScale:
    """The same for all figures over time."""
    used_s = max(chronicle.now_s, 1.0)
    return AxisScale(0.0, max(used_s, deadline_s if deadline_s <= _DEADLINE_SHOWN * used_s else 0.0), LEFT, RIGHT)


def money_over_time(chronicle: Chronicle, limits: SpendingLimits, total: str) -> str:
    """`total` is the receipt's, so that the two agree."""
    machines = chronicle.machines
    billed = chronicle.billed()
    if not machines and len(billed) == 1:
        return no_figure("money", _HEADING, "No machine has been rented yet.")
    across = time_scale(chronicle, limits.deadline_s)
    is_free = not limits.budget_usd and not billed[-1][1]
    held_top = _MONEY_TOP if is_free else _MONEY_BOTTOM + 50
    bottom = held_top + _HELD_HEIGHT
    body = [] if is_free else list(_money(chronicle, billed, limits, total, across))
    body += _held(chronicle, across, held_top, bottom)
    body.append(_deadline(across, limits.deadline_s, held_top, bottom))
    moments = axes.time_ticks(across.high)
    body.append(axes.bottom_axis(across, bottom, moments, axes.as_times(moments), "time since the start"))
    keys = [] if is_free else [("line", "money", "billed")]
    keys += [("line", "held", "machines held")]
    preempted = sum(machine.preempted for machine in machines)
    keys += [("dot", "taken", "preemption")] if preempted else []
    money = "nothing was billed" if is_free else f"{total} of {show_usd(limits.budget_usd)} billed"
    most = max((number for _, number in chronicle.held()), default=0)
    description = (
        f"After {show_duration(chronicle.now_s)} of {show_duration(limits.deadline_s)}: {money}, "
        f"at most {count(most, 'machine')} at a time, {count(preempted, 'preemption')}."
    )
    still = sum(machine.cause is None for machine in machines)
    notes = [] if is_free else ["A machine is billed when it ends."]
    notes += [f"{count(still, 'machine')} still held."] if still else []
    return figure("money", _HEADING, description, bottom + 40, body, legend(keys), " ".join(notes))


def _money(
    chronicle: Chronicle, billed: list[Point], limits: SpendingLimits, total: str, across: AxisScale
) -> Iterator[str]:
    spent = billed[-1][1]
    within = 0 < limits.budget_usd <= _BUDGET_SHOWN * spent or not spent
    highest = max(spent, limits.budget_usd if within else 0.0) * 1.06
    up = AxisScale(0.0, highest, _MONEY_BOTTOM, _MONEY_TOP)
    at = axes.ticks(0.0, highest)
    yield axes.left_axis(up, LEFT, RIGHT, at, axes.as_dollars(at), "dollars billed")
    yield tag("line", x1=LEFT, x2=RIGHT, y1=_MONEY_BOTTOM, y2=_MONEY_BOTTOM, class_="axis")
    budget = f"budget {show_usd(limits.budget_usd)}"
    if within:
        y = up(limits.budget_usd)
        yield tag("line", x1=LEFT, x2=RIGHT, y1=y, y2=y, class_="limit")
        yield label(LEFT + 6, y + 15, budget, "limit-text")
    elif limits.budget_usd:
        yield label(LEFT + 6, _MONEY_TOP + 12, f"↑ {budget}", "limit-text")
    end = (across(chronicle.now_s), up(spent))
    points = thin([(across(moment), up(usd)) for moment, usd in billed], 1.0)
    yield tag("path", d=step_path([*points, end]), class_="money", id="billed")
    yield tag("circle", cx=end[0], cy=end[1], r=4, class_="best dot")
    room = end[0] + 60 < RIGHT
    yield label(end[0] + (10 if room else -8), end[1] + (4 if room else -9), total, "value", "start" if room else "end")


def _held(chronicle: Chronicle, across: AxisScale, top: float, bottom: float) -> Iterator[str]:
    counts = chronicle.held()
    most = max(number for _, number in counts)
    up = AxisScale(0.0, max(most, 1) * 1.1, bottom, top)
    at = axes.ticks(0.0, max(most, 1), 4, whole=True)
    yield axes.left_axis(up, LEFT, RIGHT, at, [f"{number:,.0f}" for number in at], "machines held")
    line = thin([(across(moment), up(number)) for moment, number in counts], 1.0)
    line.append((across(chronicle.now_s), line[-1][1]))
    path = step_path(line)
    yield tag("path", d=f"{path}V{px(bottom)}H{px(line[0][0])}Z", class_="held-area")
    yield tag("path", d=path, class_="held", id="held")
    yield from _preemptions(chronicle, across, top)


def _preemptions(chronicle: Chronicle, across: AxisScale, y: float) -> Iterator[str]:
    """A dot for each preemption; those that would overlap share one."""
    moments = sorted(across(machine.ended_s or 0.0) for machine in chronicle.machines if machine.preempted)
    for _, near in groupby(moments, key=lambda x: x // _DOT_PX):
        together = list(near)
        title = tag("title", escaped(f"{count(len(together), 'machine')} preempted"))
        yield tag("circle", title, cx=together[0], cy=y, r=_DOT_PX / 2, class_="taken")


def _deadline(across: AxisScale, deadline_s: float, held_top: float, bottom: float) -> str:
    text = f"deadline {show_duration(deadline_s)}"
    if deadline_s > across.high:
        return label(RIGHT, held_top - 10, f"{text} →", "limit-text", "end")
    x = across(deadline_s)
    return tag("line", x1=x, x2=x, y1=_MONEY_TOP - 4, y2=bottom, class_="limit") + label(
        x, _MONEY_TOP - 10, text, "limit-text", "end"
    )
