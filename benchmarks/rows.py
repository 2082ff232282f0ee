"""The form of a result, how it is printed, and how CPU time is measured on a noisy machine."""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    """Always the number that the name promises."""
    unit: str
    against: str
    """The baseline, and the size of the measurement."""


def parser(description: str) -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(description=description)
    asked.add_argument("--quick", action="store_true", help="smaller sizes: a look, not a result")
    asked.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as a list of objects")
    return asked


def arguments(description: str) -> argparse.Namespace:
    return parser(description).parse_args()


def publish(rows: list[Row], json_file: Path | None, *, unprinted: Sequence[Row] = ()) -> None:
    """Print the rows, and write them and the unprinted ones to the file."""
    width = max(len(row.name) for row in rows)
    for row in rows:
        print(f"{row.name:<{width}}  {row.value:>12.4g} {row.unit:<10} {row.against}")
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(row) for row in (*rows, *unprinted)], indent=1) + "\n")


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of this process, user and system, spent in a piece of work."""
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def as_installed() -> dict[str, str]:
    """The environment of a command as users have it: an installed package is compiled once, not at every start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def median_ratio(ours: Callable[[], float], theirs: Callable[[], float], repeats: int) -> tuple[float, float, float]:
    """Medians of both measures and of their ratio, interleaved so that a noisy moment affects both."""
    pairs = [(ours(), theirs()) for _ in range(repeats)]
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
    )
