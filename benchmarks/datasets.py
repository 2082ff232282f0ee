"""Which data is for choosing and which for reporting (datasets.toml), and where it is.

Recorded data is no part of the project: it is read from the folder in SHOESTRING_DATA, else from ../shared/data. With
--held-out FOLDER all that is reported comes from that folder instead, whole: nothing was chosen on it.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from shoestring.errors import DataError

FILE = Path(__file__).with_name("datasets.toml")
HELD_OUT = "SHOESTRING_HELD_OUT"
"""In the environment, so that processes which a benchmark starts find it too."""
WEEK_S = 7 * 86400.0

Role = Literal["choosing", "reporting"]


class NoSuchFile(DataError):
    """Data that is not in the folder: a benchmark does without it, or is skipped."""


def data_folder() -> Path:
    return Path(os.environ.get("SHOESTRING_DATA") or Path(__file__).parents[2] / "shared" / "data")


def held_out() -> Path | None:
    """The folder of --held-out, if it was given."""
    return Path(os.environ[HELD_OUT]) if os.environ.get(HELD_OUT) else None


def reported_folder() -> Path:
    return held_out() or data_folder()


def add_held_out_option(asked: argparse.ArgumentParser) -> None:
    asked.add_argument(
        "--held-out",
        type=_use,
        metavar="FOLDER",
        help="compute the rows on reporting data from this folder instead (formats: benchmarks/README.md)",
    )


def _use(folder: str) -> Path:
    path = Path(folder)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{folder} is no folder")
    os.environ[HELD_OUT] = str(path.resolve())
    return path


def refuse_choosing_on_held_out(choosing: bool) -> None:
    if choosing and held_out() is not None:
        raise SystemExit("nothing is chosen on held-out data: give --held-out or the option for choosing, not both")


def files(pattern: str) -> list[Path]:
    """The files that are reported or chosen on, by a pattern of their names. DataError where there is none."""
    found = sorted(reported_folder().glob(pattern))
    if not found:
        where = "--held-out" if held_out() else "SHOESTRING_DATA"
        raise NoSuchFile(f"{reported_folder() / pattern} is missing", hint=f"set {where} to the folder that has it")
    return found


# -- what datasets.toml says -------------------------------------------------------------------------------------------
@cache
def roles() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def names(section: str, role: Role) -> tuple[str, ...]:
    """What may be used in this role; what is in both roles is reported, and said to be in both."""
    found = roles()[section]
    return (*found.get(role, ()), *(found.get("both", ()) if role == "reporting" else ()))


def surrogate(task: str) -> bool:
    """Are the curves of this task predictions of a model, and not records of trainings?"""
    return task.partition("/")[0] in roles()["curves"]["surrogates"]


def price_file(recording: str) -> str:
    return str(roles()["prices"][recording]["file"])


def weeks(recording: str, role: Role) -> list[tuple[float, float]]:
    """The weeks of a price recording that have this role, in UTC seconds."""
    found = roles()["prices"][recording]
    begin: datetime = found["begin"]
    starts = [begin.timestamp() + number * WEEK_S for number in found[f"{role}_weeks"]]
    return [(start, start + WEEK_S) for start in starts]


# -- what a benchmark prints -------------------------------------------------------------------------------------------
def announce(section: str, used: Iterable[str], role: Role = "reporting") -> None:
    """Print which data the rows that follow are about, and what it is for."""
    listed = list(used)
    folder = held_out()
    if folder is not None and role == "reporting":
        print(f"data, held out ({folder}): {', '.join(listed)}")
        return
    told = roles()[section] if section in roles() else roles()["prices"][section]
    both = [name for name in listed if name.partition("/")[0] in told.get("both", ()) or name in told.get("both", ())]
    rest = [name for name in listed if name not in both]
    if rest:
        print(f"data, for {role}: {', '.join(rest)}")
    if both:
        print(f"data, for choosing and reporting: {', '.join(both)}: {told['why_both']}")
    if modelled := [name for name in listed if section == "curves" and surrogate(name)]:
        print(f"{len(modelled)} of them are a surrogate: {', '.join(modelled)}")
