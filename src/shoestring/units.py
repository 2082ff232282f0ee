"""Money, time, numbers and text: parse what people write, show plain units and plain text.

What is shown can be parsed again: `parse_duration_s(show_duration(7800))` is 7800 again.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta

from shoestring.errors import SpecError

_USD = re.compile(
    r"\$?\s*(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:e[-+]?\d+)?)\s*(?:\$|usd|dollars?)?", re.IGNORECASE
)
_CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d*)?)")
_PART = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*")
_UNITS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_SPELLINGS = {
    **{unit: unit for unit in _UNITS},
    **dict.fromkeys(("week", "weeks"), "w"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
}
ACTIVE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal or a reader would obey: control characters, changes of the writing direction, half characters."""
_IMPLIED = {"h": "m", "m": "s"}
"""The unit of a last number that has none: "2h10" is two hours and ten minutes."""


def parse_usd(value: object, field: str = "budget") -> float:
    """Dollars, from a number or from text such as "$20", "20 USD", "1,000.50"."""
    hint = f"write dollars as a number or as text, for example {field}=20 or {field}='$20'"
    usd = _number(value)
    if usd is None and isinstance(value, str):
        match = _USD.fullmatch(value.strip())
        usd = _number_in(match["number"].replace(",", "")) if match else None
    if usd is None or not math.isfinite(usd):
        raise SpecError(f"{field}={value!r} is not an amount of dollars", hint=hint)
    if usd < 0:
        raise SpecError(f"{field}={value!r} is negative", hint=hint)
    return usd


def parse_moment(value: object, field: str) -> float:
    """UTC seconds, from ISO text such as "2016-04-01T12:00", a date, a datetime, or a number of seconds; UTC where it
    names no time zone."""
    moment: date | None = value if isinstance(value, date) else None
    seconds = _number(value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            seconds = None
    try:
        if moment is not None:
            whole = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
            seconds = (whole if whole.tzinfo else whole.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, OSError):
        seconds = None
    if seconds is None or not math.isfinite(seconds):
        raise SpecError(f"{field} {value!r} is not a time", hint="write it as 2016-04-01 or 2016-04-01T12:00")
    return seconds


def parse_duration_s(value: object, field: str = "deadline") -> float:
    """Seconds, from a number of seconds, a timedelta, or text such as "6h", "1h30m", "2 days", "2h10", "1:30:00"."""
    hint = f"write a time as seconds or as text, for example {field}=3600, {field}='90m' or {field}='1d12h'"
    seconds = value.total_seconds() if isinstance(value, timedelta) else _number(value)
    if seconds is None and isinstance(value, str):
        text = value.strip().lower()
        seconds = _seconds_in(text.removeprefix("-"))
        seconds = -seconds if seconds is not None and text.startswith("-") else seconds
    if seconds is None or not math.isfinite(seconds):
        raise SpecError(f"{field}={value!r} is not a length of time", hint=hint)
    if seconds < 0:
        raise SpecError(f"{field}={value!r} is negative", hint=hint)
    return seconds


def show_usd(usd: float) -> str:
    """To the cent, or to two significant digits where cents would hide the amount."""
    size = abs(usd)
    if size == 0 or size >= 0.0995:
        text = f"{size:,.2f}"
    elif size < 1e-6:
        text = _short_exponent(f"{size:.2g}")
    else:
        digits = f"{size:.{1 - math.floor(math.log10(size))}f}".rstrip("0")
        text = digits + "0" * max(0, 2 - len(digits.partition(".")[2]))
    return f"{'-' if usd < 0 else ''}${text}"


def show_duration(seconds: float) -> str:
    """The two largest units that matter: "45s", "1m30", "11m", "2h10", "3d4h"."""
    if not math.isfinite(seconds):
        return "for ever" if seconds > 0 else "never"
    if seconds < 0:
        return f"-{show_duration(-seconds)}"
    if seconds < 9.95:
        return f"{round(seconds, 2):.2g}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return _pair(whole // 60, "m", whole % 60)
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return _pair(minutes // 60, "h", minutes % 60)
    hours = round(seconds / 3600)
    days, hours = divmod(hours, 24)
    return f"{days}d{hours}h" if hours else f"{days}d"


def show_bytes(size: float) -> str:
    """Two significant digits, in powers of 1000: "350 MB", "3.4 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 9.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def show_number(value: float) -> str:
    """A metric: four significant digits, no exponent where plain digits are as short."""
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e3:
        return f"{value:.4g}"
    if 1e3 <= abs(value) < 1e7:
        return f"{value:.0f}"
    return _short_exponent(f"{value:.4g}")


def show_text(text: str, keep: str = "") -> str:
    """Text from elsewhere, as text: what a terminal would obey is shown as its escape, "\\x1b[2J". On one line, unless
    `keep` has the line break."""
    return ACTIVE.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _number(value: object) -> float | None:
    """The value as a float if it is a number already. True does not count as one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _number_in(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _seconds_in(text: str) -> float | None:
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        return float(hours) * 3600 + float(minutes) * 60 + float(seconds)
    plain = _number_in(text)
    if plain is not None:
        return plain
    total, last, position = 0.0, "", 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            return None
        number, word = part.groups()
        unit = _SPELLINGS.get(word) if word else _IMPLIED.get(last)
        out_of_order = unit is not None and last and _UNITS[unit] >= _UNITS[last]
        if unit is None or out_of_order or (not word and part.end() < len(text)):
            return None
        total, last, position = total + float(number) * _UNITS[unit], unit, part.end()
    return total if last else None


def _pair(big: int, unit: str, small: int) -> str:
    return f"{big}{unit}{small:02d}" if small else f"{big}{unit}"


def _short_exponent(text: str) -> str:
    """1.2e-5 instead of 1.2e-05."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text
