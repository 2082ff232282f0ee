"""From values to pixels: scales, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from shoestring.report.plots.svg import label, tag
from shoestring.units import show_duration, show_number

FAR_PX = 1e5
"""Where points far outside the plot are clamped: beyond any edge, and safe for a browser."""
LARGEST = 1e300
"""Larger values count as infinite; differences of smaller ones do not overflow."""
_ROUND = (1.0, 2.0, 5.0, 10.0)
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_ROUND_TIMES_S = (
    *(1.0, 2.0, 5.0, 10.0, 20.0, 30.0),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 20, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 4, 6, 12)),
    *(days * _DAY for days in (1, 2, 5, 7, 14, 28)),
)


@dataclass(frozen=True, slots=True)
class AxisScale:
    """Maps values between `low` and `high` to pixels; inverted when `to_px` is less than `from_px`."""

    low: float
    high: float
    from_px: float
    to_px: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self._on(self.low), self._on(self.high)
        share = -math.inf if self.log and value <= 0 else (self._on(value) - low) / (high - low)
        at = self.from_px + share * (self.to_px - self.from_px)
        return min(max(at, -FAR_PX), FAR_PX)

    def _on(self, value: float) -> float:
        return math.log10(value) if self.log else value


def round_step(width: float, about: int) -> float:
    """1, 2 or 5 times a power of ten, so that `width` takes about `about` steps."""
    rough = width / about
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in _ROUND if power * factor >= rough * 0.999)


def ticks(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    step = round_step(high - low, about)
    step = max(1.0, step) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def log_ticks(low: float, high: float, about: int = 8) -> list[float]:
    """Powers of ten; 2 and 5 times them between few; plain round numbers where even those are too few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first) / about))
    factors = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    found = [10.0**power * factor for power in range(first, last + 1, stride) for factor in factors]
    found = [value for value in found if low * 0.999 <= value <= high * 1.001]
    return found if len(found) > 1 else [value for value in ticks(low, high, 4) if value > 0]


def time_ticks(high_s: float, about: int = 7) -> list[float]:
    step = next((step for step in _ROUND_TIMES_S if high_s / step <= about), None)
    step = round_step(high_s / _DAY, about) * _DAY if step is None else step
    return [index * step for index in range(math.floor(high_s / step + 1e-9) + 1)]


def as_numbers(values: Sequence[float]) -> list[str]:
    """All with as many digits as the smallest difference needs."""
    largest = max((abs(value) for value in values), default=0.0)
    gaps = [b - a for a, b in pairwise(values)]
    finest = min(gaps, default=largest)
    if largest >= 1e6 or 0 < finest < 1e-5:
        return [show_number(value) for value in values]
    return [f"{value:.{_places(finest)}f}" for value in values]


def as_powers(values: Sequence[float]) -> list[str]:
    """Each with its own digits: a log scale holds both 0.001 and 100."""
    return [show_number(value) for value in values]


def as_dollars(values: Sequence[float]) -> list[str]:
    finest = min((b - a for a, b in pairwise(values)), default=1.0)
    places = 0 if finest >= 1 else max(2, _places(finest))
    return ["$0" if value == 0 else f"${value:,.{places}f}" for value in values]


def as_times(values: Sequence[float]) -> list[str]:
    return ["0" if value == 0 else show_duration(value) for value in values]


def bottom_axis(scale: AxisScale, y: float, values: Sequence[float], texts: Sequence[str], name: str = "") -> str:
    marks = [
        tag("line", x1=scale(value), x2=scale(value), y1=y, y2=y + 4, class_="axis")
        + label(scale(value), y + 16, text, anchor="middle")
        for value, text in zip(values, texts, strict=True)
    ]
    named = label(scale.to_px, y + 32, name, "name", anchor="end") if name else ""
    return tag("line", x1=scale.from_px, x2=scale.to_px, y1=y, y2=y, class_="axis") + "".join(marks) + named


def left_axis(
    scale: AxisScale, left: float, right: float, values: Sequence[float], texts: Sequence[str], name: str
) -> str:
    """Grid lines with numbers to their left; the name is horizontal above them, so that it is easy to read."""
    marks = [
        tag("line", x1=left, x2=right, y1=scale(value), y2=scale(value), class_="grid")
        + label(left - 8, scale(value) + 4, text, anchor="end")
        for value, text in zip(values, texts, strict=True)
    ]
    return "".join(marks) + label(left, scale.to_px - 10, name, "name")


def _places(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
