"""Submissions: read like a spec file, and stored as received in the run's folder.

`submitted.json` is all there is of a queued run. Once it has started, its journal records everything else.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoestring.backends.registry import find_place
from shoestring.errors import DamagedFile, SpecError, StorageError
from shoestring.runs.cli_context import CliContext, cli_context
from shoestring.runs.folder import RunFolder, home, run_folder
from shoestring.runs.launch import begin, conclude
from shoestring.server.limits import MAX_JOBS
from shoestring.server.schemas import Mode, Submit, fields_of
from shoestring.specs.build import kind_of
from shoestring.specs.job_table import with_table
from shoestring.specs.market import make_market
from shoestring.specs.request import RunRequest
from shoestring.worker.task import read_json, write_json

FILE = "submitted.json"
_SOURCE = "spec"


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    spec: dict[str, Any]
    mode: Mode
    folder: str
    """Where user code runs."""
    submitted_at: float
    cancelled: bool = False

    def same_as(self, other: Submission) -> bool:
        return (self.spec, self.mode) == (other.spec, other.mode)


def checked(body: Submit, folder: Path, store: Path) -> tuple[RunFolder, Submission]:
    """Folder and record of the submitted run; SpecError if it is invalid. No user code is run."""
    given = fields_of(body.spec)
    spec = {"kind": kind_of(given), **with_table(given, folder)}
    on = spec.get("on", "local")
    if find_place(on).place.in_caller:
        raise SpecError(f"on={on!r} would run your code in the service", hint="use local or ray")
    if _jobs(spec) > MAX_JOBS:
        raise SpecError(f"this makes more than {MAX_JOBS:,} jobs", hint="split it into several bags")
    market = spec.get("market")
    if isinstance(market, Mapping) and isinstance(prices := market.get("prices"), str):
        spec["market"] = {**market, "prices": os.path.join(folder, prices)}
    if isinstance(market, Mapping) and "nodes" in market:
        spec["market"] = {**market, "folder": str(folder)}
    _refuse_price_commands(spec.get("market"))
    kind, fields = _split(spec)
    request = RunRequest.resolve(None, fields, kind=kind, source=_SOURCE, runs_code=body.mode == "run", folder=folder)
    spec["name"] = request.spec.name
    place = run_folder(f"{request.spec.name}-simulated" if body.mode == "simulate" else request.spec.name, store)
    return place, Submission(spec=spec, mode=body.mode, folder=str(folder), submitted_at=time.time())


def _refuse_price_commands(market: object) -> None:
    """They would run in the service itself, while a submission is checked."""
    if any(node.price_command for node in make_market(market).nodes):
        raise SpecError(
            "market: a service runs no price_command", hint="let the command write a price file, and give `prices`"
        )


def save_submission(folder: RunFolder, submission: Submission) -> None:
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        write_json(folder.path / FILE, submission)
    except OSError as error:
        raise StorageError(f"cannot write in {folder.path}: {error.strerror}") from error


def read_submission(folder: RunFolder) -> Submission | None:
    """The submission; None for a run that was started without the service."""
    try:
        return read_json(folder.path / FILE, Submission)
    except (OSError, DamagedFile):
        return None


def all_runs(store: Path) -> Iterator[RunFolder]:
    """Every run in the folder of all runs, started or queued, by name."""
    try:
        found = sorted(path.name for path in home(store).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in found:
        folder = RunFolder(home(store) / name)
        if folder.exists() or (folder.path / FILE).exists():
            yield folder


def drive(folder: RunFolder, *, ending: bool, context: CliContext) -> None:
    """Start or resume a submitted run, as `shoestring run` would its file; `ending`: conclude it."""
    submission = read_submission(folder)
    if submission is None:
        raise SpecError(f"nothing was submitted in {folder.path}", hint="submit it to the service")
    if ending:
        conclude(folder)
        return
    kind, fields = _split(submission.spec)
    fields["store"] = folder.path.parent
    with cli_context(context):
        begin(None, fields, kind=kind, source=_SOURCE, folder=Path(submission.folder))


def _split(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Study or bag, and the other fields."""
    fields = dict(spec)
    return fields.pop("kind"), fields


def _jobs(spec: Mapping[str, Any]) -> int:
    """How many jobs a spec lists, counted without making them."""
    over, given = spec.get("over"), spec.get("given")
    listed = math.prod(len(values) for values in over.values() if isinstance(values, list)) if over else 0
    return max(listed, len(given or ()), spec.get("trials") or 0)
