"""The option --plot of benchmarks that draw with matplotlib, and bars in groups."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def add_plot_option(asked: argparse.ArgumentParser, what: str) -> None:
    asked.add_argument("--plot", type=Path, metavar="FILE", help=f"draw {what}, as PNG, SVG or PDF")


def check_plot(path: Path | None) -> None:
    """Checked before anything is measured."""
    if path is None:
        return
    if find_spec("matplotlib") is None:
        sys.exit("--plot needs matplotlib, which is not installed: pip install matplotlib")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        sys.exit(f"--plot {path}: name a file that ends in .png, .svg or .pdf")


def bars(panel: Any, groups: Sequence[str], lines: Sequence[str], height: Callable[[str, str], float]) -> None:
    """A group of bars for each of `groups`, in it one of each of `lines`: `height(line, group)`."""
    width = 0.8 / len(lines)
    for index, line in enumerate(lines):
        places = [group + (index - (len(lines) - 1) / 2) * width for group in range(len(groups))]
        panel.bar(places, [height(line, group) for group in groups], width, label=line)
    panel.set_xticks(range(len(groups)), groups)
