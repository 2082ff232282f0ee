"""Reports of programs in any language: JSON lines on standard output, or in the file SHOESTRING_REPORTS.

    {"step": 3, "loss": 0.2}            a report
    {"fraction": 0.25, "loss": 0.3}     the same of a smaller part of the data than the trial's own
    {"saved": "net-3", "step": 3}       a finished file or folder in SHOESTRING_SAVE_TO, which stays as it is

Anything else a program prints is its own business.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from shoestring.errors import SpecError
from shoestring.kernel.types import Metrics
from shoestring.trial import ReportError, as_number, as_step
from shoestring.worker.subsampling import part_of

REPORTS = "SHOESTRING_REPORTS"
LONGEST_LINE = 1 << 20


class ReportedStep(NamedTuple):
    step: int
    metrics: Metrics


class Passed(NamedTuple):
    """What is true of a smaller part of the data, which the program has trained on by now."""

    step: int
    fraction: float
    metrics: Metrics


class Announced(NamedTuple):
    """A finished checkpoint, by its name inside SAVE_TO."""

    name: str
    step: int


def understand(
    line: bytes, metric: str | None, next_step: int, fraction: float = 1.0
) -> ReportedStep | Passed | Announced | None:
    """What a line of output tells us: None for anything that is not meant for us, ReportError for a muddled report.

    `fraction` is the program's own share of the data.
    """
    text = line.strip()
    if not text.startswith(b"{") or len(text) > LONGEST_LINE:
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if "saved" in said:
        if not isinstance(said["saved"], str) or not said["saved"]:
            raise ReportError(f'"saved" is {said["saved"]!r}, not the name of a file or folder')
        return Announced(said["saved"], as_step(said.get("step", next_step - 1)))
    if "step" not in said and (metric is None or metric not in said):
        return None
    step = as_step(said.pop("step", next_step))
    part = part_of(fraction, as_number("fraction", said.pop("fraction"))) if "fraction" in said else None
    metrics = {name: number for name, value in said.items() if (number := _number(name, value, metric)) is not None}
    if not metrics:
        raise ReportError(f"the report of step {step} holds no number")
    return ReportedStep(step, metrics) if part is None else Passed(step, part, metrics)


def _number(name: str, value: object, metric: str | None) -> float | None:
    if isinstance(value, str) and value.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(value)  # how languages without NaN in their JSON say it
    try:
        return as_number(name, value)
    except ReportError:
        if name == metric:
            raise
        return None  # a note beside the numbers


def report_from_shell(step: int, metrics: Mapping[str, float]) -> None:
    """For `shoestring tell`: add a line to the file the worker beside this program reads."""
    path = os.environ.get(REPORTS)
    if not path:
        raise SpecError(
            f"{REPORTS} is not set: nothing here is listening for reports",
            hint="this is for programs that shoestring runs; elsewhere there is nobody to report to",
        )
    line = json.dumps({**{name: as_number(name, value) for name, value in metrics.items()}, "step": as_step(step)})
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, line.encode() + b"\n")
    finally:
        os.close(fd)
