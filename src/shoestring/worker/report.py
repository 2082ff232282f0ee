"""Reports of programs in any language: JSON lines on standard output, or in the file SHOESTRING_REPORTS.

    {"step": 3, "loss": 0.2}            a report
    {"loss": 0.2}                       the same of the next step: of the metric, in a bag of any numbers
    {"fraction": 0.25, "loss": 0.3}     a snapshot: the same on a smaller data fraction than the trial's own
    {"saved": "net-3", "step": 3}       a finished file or folder in SHOESTRING_SAVE_TO, which stays as it is

Anything else a program prints is ignored.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from shoestring.errors import SpecError
from shoestring.kernel.types import Metrics
from shoestring.trial import LARGEST_REPORT_BYTES, ReportError, as_number, as_step, check_size
from shoestring.worker.subsampling import smaller_fraction

REPORTS = "SHOESTRING_REPORTS"
LONGEST_LINE = 2 * LARGEST_REPORT_BYTES
"""A report may be printed with more blanks and digits than it has when it is stored."""


class ReportedStep(NamedTuple):
    step: int
    metrics: Metrics


class ReportedSnapshot(NamedTuple):
    """The metrics on a smaller data fraction, which the program has trained on by now."""

    step: int
    fraction: float
    metrics: Metrics


class SavedFile(NamedTuple):
    """A finished checkpoint, by its name inside SHOESTRING_SAVE_TO."""

    name: str
    step: int


def parse_line(
    line: bytes, metric: str | None, next_step: int, fraction: float = 1.0, *, any_metric: bool = False
) -> ReportedStep | ReportedSnapshot | SavedFile | None:
    """The report in a line of output: None if it is no report, ReportError if it is malformed.

    `fraction` is the trial's own data fraction. `any_metric`: an object of numbers and nothing else is a report,
    whatever their names. One with texts in it is not: it may be a line of a log, or the program's result.
    """
    text = line.strip()
    if not text.startswith(b"{"):
        return None
    if len(text) > LONGEST_LINE:
        begins = text[:40].decode(errors="replace")
        raise ReportError(f"a line of more than {LONGEST_LINE / 1e6:.0f} MB is too long for a report: {begins}...")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if "saved" in fields:
        if not isinstance(fields["saved"], str) or not fields["saved"]:
            raise ReportError(f'"saved" is {fields["saved"]!r}, not the name of a file or folder')
        return SavedFile(fields["saved"], as_step(fields.get("step", next_step - 1)))
    if "step" not in fields and metric not in fields and not (any_metric and _all_numbers(fields)):
        return None
    step = as_step(fields.pop("step", next_step))
    smaller = None
    if "fraction" in fields:
        smaller = smaller_fraction(fraction, as_number("fraction", fields.pop("fraction")))
    metrics = {name: number for name, value in fields.items() if (number := _number(name, value, metric)) is not None}
    if not metrics:
        raise ReportError(f"the report of step {step} holds no number")
    check_size(metrics)
    return ReportedStep(step, metrics) if smaller is None else ReportedSnapshot(step, smaller, metrics)


def _all_numbers(fields: Mapping[str, object]) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in fields.values()]
    return bool(numbers) and all(numbers)


def value_as_text(metric: str) -> re.Pattern[bytes]:
    """Finds the metric and a number beside it in a line that is no report: "val_loss: 0.3", "val_loss = 3e-1"."""
    number = rb"[-+]?(\d+\.?\d*|\.\d+|nan|inf)"
    return re.compile(rb"(?<![\w.])" + re.escape(metric.encode()) + rb"[\"']?\s*[:=]?\s*" + number, re.IGNORECASE)


def _number(name: str, value: object, metric: str | None) -> float | None:
    if isinstance(value, str) and value.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(value)  # how languages without NaN in their JSON write it
    try:
        return as_number(name, value)
    except ReportError:
        if name == metric:
            raise
        return None  # a text among the numbers


def report_from_shell(step: int, metrics: Mapping[str, float]) -> None:
    """For `shoestring report-metric`: append a line to the file that the worker of this program reads."""
    path = os.environ.get(REPORTS)
    if not path:
        raise SpecError(
            f"{REPORTS} is not set: nothing here is listening for reports",
            hint="this is for programs that shoestring runs; elsewhere nothing reads the reports",
        )
    line = json.dumps({**{name: as_number(name, value) for name, value in metrics.items()}, "step": as_step(step)})
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line.encode() + b"\n")
    finally:
        os.close(fd)
