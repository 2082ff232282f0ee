"""Machines as bars over time: coloured by how they ended, with the trials they ran."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel.types import LOCAL
from shoestring.report.plots import axes
from shoestring.report.plots.axes import AxisScale
from shoestring.report.plots.figure import LEFT, RIGHT, count, figure, legend, no_figure
from shoestring.report.plots.journal_pass import Chronicle, Held, TrialInterval
from shoestring.report.plots.spending import time_scale
from shoestring.report.plots.svg import box_path, escaped, label, shortened, tag
from shoestring.units import show_duration, show_usd

SHOWN = 60
_HEADING = "Machines"
_TOP, _BAR, _GAP = 14.0, 14.0, 4.0
_LANES = 4
"""Trials side by side on a machine with several slots: more do not fit into a bar."""
_DIGIT_PX, _NARROW_PX = 6.0, 3.0
_ENDS = {
    "released": "released",
    "revoked": "preempted",
    "expired": "prepaid time expired",
    "lost": "lost",
    "open": "still held",
}


def machine_bars(chronicle: Chronicle, deadline_s: float) -> str:
    machines = chronicle.machines
    if not machines:
        return no_figure("machines", _HEADING, "No machine has come up yet.")
    shown = machines[:SHOWN]
    across = time_scale(chronicle, deadline_s) if len(shown) == len(machines) else _while_held(shown, chronicle.now_s)
    bottom = _TOP + len(shown) * (_BAR + _GAP)
    moments = axes.time_ticks(across.high)
    rules = [
        tag("line", x1=across(moment), x2=across(moment), y1=_TOP - 4, y2=bottom, class_="grid") for moment in moments
    ]
    body = [*rules, *_rows(shown, across, chronicle.now_s)]
    body.append(axes.bottom_axis(across, bottom, moments, axes.as_times(moments), "time since the start"))
    ends = [_end(machine) for machine in shown]
    keys = [("box", end, f"{text} ({ends.count(end)})") for end, text in _ENDS.items() if end in ends]
    caption = _caption(machines, shown)
    description = f"{count(len(shown), 'machine')}: " + ", ".join(text for _, _, text in keys) + f". {caption}"
    return figure("machines", _HEADING, description, bottom + 40, body, legend(keys), caption)


def _while_held(shown: list[Held], now_s: float) -> AxisScale:
    """For a long run, only the time in which the machines shown were held."""
    return AxisScale(0.0, max(1.0, *(_until(machine.ended_s, now_s) for machine in shown)), LEFT, RIGHT)


def lanes(intervals: list[TrialInterval], now_s: float) -> list[list[TrialInterval]]:
    """Trials that ran at the same time in lanes of their own, as few as will do."""
    found: list[list[TrialInterval]] = []
    for interval in sorted(intervals, key=lambda interval: interval.began_s):
        free = (lane for lane in found if _until(lane[-1].ended_s, now_s) <= interval.began_s)
        lane = next(free, None)
        if lane is None:
            found.append([interval])
        else:
            lane.append(interval)
    return found


def _rows(shown: list[Held], across: AxisScale, now_s: float) -> Iterator[str]:
    above = ""
    for row, machine in enumerate(shown):
        y = _TOP + row * (_BAR + _GAP)
        name = _name(machine)
        if name != above:  # once for neighbours of one type
            yield label(LEFT - 8, y + _BAR - 3, name, anchor="end")
            above = name
        yield _bar(machine, y, across, now_s)


def _bar(machine: Held, y: float, across: AxisScale, now_s: float) -> str:
    begin, end = across(machine.began_s or 0.0), across(_until(machine.ended_s, now_s))
    kind = _end(machine)
    marks = [tag("rect", x=begin, y=y, width=max(end - begin, 1.0), height=_BAR, class_=f"bar {kind}")]
    beside = lanes(machine.intervals, now_s)
    if 0 < len(beside) <= _LANES:
        boxes, numbers = _trials(beside, y, across, now_s)
        marks += [tag("path", d=boxes, class_=kind), *numbers]
    if machine.preempted:
        marks.append(tag("rect", x=end - 1.5, y=y - 2, width=3.0, height=_BAR + 4, class_=kind))
    return tag("g", tag("title", escaped(_describe(machine, now_s))), *marks)


def _trials(beside: list[list[TrialInterval]], y: float, across: AxisScale, now_s: float) -> tuple[str, list[str]]:
    """The intervals as one path, and trial numbers where they fit."""
    height = _BAR / len(beside)
    boxes: list[str] = []
    numbers: list[str] = []
    for index, lane in enumerate(beside):
        for begin, end, text in _boxes(lane, across, now_s):
            boxes.append(box_path(begin, y + index * height, max(end - begin - 0.8, 0.4), height - 0.6))
            if text and len(beside) == 1 and end - begin > len(text) * _DIGIT_PX + 4:
                numbers.append(label((begin + end) / 2, y + _BAR - 3.5, text, "inside", "middle"))
    return "".join(boxes), numbers


def _boxes(lane: list[TrialInterval], across: AxisScale, now_s: float) -> list[tuple[float, float, str]]:
    """Where each trial begins and ends, in pixels. Neighbours too narrow to tell apart become one box."""
    found: list[tuple[float, float, str]] = []
    for interval in lane:
        begin, end = across(interval.began_s), across(_until(interval.ended_s, now_s))
        text = str(interval.trial) if end - begin >= _NARROW_PX else ""
        if found and not text and not found[-1][2] and begin - found[-1][1] < 1.0:
            found[-1] = (found[-1][0], end, "")
        else:
            found.append((begin, end, text))
    return found


def _end(machine: Held) -> str:
    return machine.cause or "open"


def _until(ended_s: float | None, now_s: float) -> float:
    return now_s if ended_s is None else ended_s


def _name(machine: Held) -> str:
    offer = machine.offer
    if offer.provider == LOCAL:
        return str(offer)
    return shortened(offer.machine, 14) + ("" if offer.spot else "*")


def _describe(machine: Held, now_s: float) -> str:
    began = machine.began_s or 0.0
    length = show_duration(_until(machine.ended_s, now_s) - began)
    bill = "" if machine.cause is None else f", {show_usd(machine.charged_usd)}"
    trials = ", ".join(dict.fromkeys(str(interval.trial) for interval in machine.intervals))
    ran = f"; trials {trials}" if trials else "; nothing ran on it"
    text = f"{machine.id}, {machine.offer}: {length} from {show_duration(began)} on, {_ENDS[_end(machine)]}{bill}{ran}"
    return shortened(text, 300)


def _caption(machines: list[Held], shown: list[Held]) -> str:
    notes = ["Dark where a trial ran (its number where there is room), pale where the machine was idle."]
    if len(shown) < len(machines):
        notes.append(f"The first {SHOWN} of {len(machines):,} machines.")
    if any(not machine.offer.spot and machine.offer.provider != LOCAL for machine in shown):
        notes.append("* on-demand: never preempted.")
    return " ".join(notes)
