"""The slots of each trial over time: one run each of some contestants, stacked like the paper's Figure 1.

Every trial that was trained for long has a colour of its own and a band as high as its slots; those pruned early are
grey and on top. White below the line of rented slots is idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.curve_task import CurveTask
from benchmarks.datasets import names
from benchmarks.seer_arena import Setting, play
from benchmarks.seer_contestants import CONTESTANTS
from benchmarks.seer_market import MACHINE_SLOTS, Cell
from benchmarks.tables import load
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.types import JobId, SegmentId
from shoestring.report.plots import axes
from shoestring.report.plots.axes import AxisScale
from shoestring.report.plots.figure import LEFT, RIGHT, WIDTH
from shoestring.report.plots.journal_pass import Chronicle
from shoestring.report.plots.svg import box_path, escaped, label, step_path, tag

DRAWN = ("asha", "hypersched", "seer")
TASK, CELL, SEED = names("curves", "reporting")[0], Cell(15, 240), 0
COLOURS = ("#0b63ce", "#2a9d5c", "#d97706", "#8a4f9e", "#c0392b", "#1593a5", "#946600", "#d6589f")
_TOP, _HEIGHT, _BETWEEN = 60.0, 150.0, 76.0
_STYLE = (
    "text { font: 12px system-ui, sans-serif; fill: #5d6670 } .name { fill: #22262b } "
    ".axis { stroke: #b9c0c7 } .grid { stroke: #e9ecef } .held { fill: none; stroke: #22262b } "
    ".soon { fill: #b9c0c7; stroke: #b9c0c7 }"
)


@dataclass(frozen=True)
class Stretch:
    """A trial on some slots, without a break."""

    job: JobId
    slots: int
    began_s: float
    ended_s: float


@dataclass(frozen=True)
class Allocation:
    name: str
    stretches: Sequence[Stretch]
    held: Sequence[tuple[float, int]]
    """Slots rented from each moment on."""


def picture(names: Sequence[str] = DRAWN) -> str:
    task = load((TASK,))[TASK]
    allocations = [allocation(task, CELL, name, CONTESTANTS[name].setting(CELL), SEED) for name in names]
    about = f"{TASK}, {CELL.minutes} minutes, {CELL.slot_minutes} slot-minutes; grey: given up soon"
    return draw(allocations, CELL, about)


def allocation(task: CurveTask, cell: Cell, name: str, setting: Setting, seed: int) -> Allocation:
    _, _, journal = play(task, cell, name, setting, seed)
    entries = list(journal.read())
    held = [(at, machines * MACHINE_SLOTS) for at, machines in Chronicle(entries).held()]
    return Allocation(name, list(_stretches(entries)), held)


def _stretches(entries: Sequence[Entry]) -> Iterator[Stretch]:
    start = entries[0].event.at
    running: dict[SegmentId, tuple[d.StartSegment, float]] = {}
    for entry in entries:
        if isinstance(entry.event, e.SegmentEnded) and entry.event.segment in running:
            started, began = running.pop(entry.event.segment)
            yield Stretch(started.job, started.slots, began - start, entry.event.at - start)
        for order in entry.decisions:
            if isinstance(order, d.StartSegment):
                running[order.segment] = order, entry.event.at


def draw(allocations: Sequence[Allocation], cell: Cell, about: str) -> str:
    """Stacked panels on the same scales: equal areas are equal money."""
    most = max(slots for one in allocations for _, slots in one.held)
    across = AxisScale(0.0, cell.minutes * 60.0, LEFT, RIGHT)
    heading = f"Slots in use: {', '.join(one.name for one in allocations)}"
    body = [label(LEFT, 22, heading, "name"), label(LEFT, 40, about)]
    for index, one in enumerate(allocations):
        top = _TOP + index * (_HEIGHT + _BETWEEN) + 20
        body += _panel(one, across, AxisScale(0.0, most, top + _HEIGHT, top))
    return tag(
        "svg",
        tag("title", escaped(heading)),
        tag("style", escaped(_STYLE)),
        tag("rect", width="100%", height="100%", fill="#fff"),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {_TOP + len(allocations) * (_HEIGHT + _BETWEEN):.0f}",
    )


def _panel(one: Allocation, across: AxisScale, up: AxisScale) -> Iterator[str]:
    counts = axes.ticks(0.0, up.high, 4, whole=True)
    yield axes.left_axis(up, LEFT, RIGHT, counts, axes.as_numbers(counts), f"{one.name}: slots")
    yield from _bands(one.stretches, across, up)
    line = [(across(at), up(slots)) for at, slots in one.held]
    yield tag("path", d=step_path(line), class_="held")
    moments = axes.time_ticks(across.high)
    yield axes.bottom_axis(across, up.from_px, moments, axes.as_times(moments), "time since the start")


def _bands(stretches: Sequence[Stretch], across: AxisScale, up: AxisScale) -> Iterator[str]:
    """From each moment to the next in which anything changes, the trials stacked, those trained longest below."""
    spent: dict[JobId, float] = {}
    for stretch in stretches:
        spent[stretch.job] = spent.get(stretch.job, 0.0) + stretch.slots * (stretch.ended_s - stretch.began_s)
    ranked = sorted(spent, key=lambda job: -spent[job])
    colour = dict(zip(ranked, COLOURS, strict=False))
    rank = {job: index for index, job in enumerate(ranked)}
    moments = sorted({at for stretch in stretches for at in (stretch.began_s, stretch.ended_s)})
    boxes: dict[str, list[str]] = {}
    for began, ended in pairwise(moments):
        below = 0
        there = [stretch for stretch in stretches if stretch.began_s <= began and stretch.ended_s >= ended]
        for stretch in sorted(there, key=lambda stretch: rank[stretch.job]):
            top, bottom = up(below + stretch.slots), up(below)
            box = box_path(across(began), top, across(ended) - across(began), bottom - top)
            boxes.setdefault(colour.get(stretch.job, ""), []).append(box)
            below += stretch.slots
    for fill, paths in boxes.items():
        marks = {"fill": fill, "stroke": fill} if fill else {"class_": "soon"}
        yield tag("path", d="".join(paths), stroke_width=0.5, **marks)  # the stroke closes seams between neighbours
