"""What was submitted: read in the same way as a spec file, and kept as it came in the run's folder.

`submitted.json` is all there is of a run that waits. Once it has begun, its journal tells everything else.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoestring.errors import SpecError, StorageError
from shoestring.runs.cli_context import CliContext, cli_context
from shoestring.runs.folder import RunFolder, home, run_folder
from shoestring.runs.launch import begin, conclude
from shoestring.server.limits import MAX_JOBS
from shoestring.server.schemas import Mode, Submit, words
from shoestring.specs.build import kind_of
from shoestring.specs.job_table import with_table
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
    """The run this asks for and what is kept of it; SpecError if it cannot be. Nothing of the user's is run."""
    said = words(body.spec)
    spec = {"kind": kind_of(said), **with_table(said, folder)}
    if spec.get("on") == "inline":
        raise SpecError("on='inline' would run your code in the service", hint="use local or ray")
    if _jobs(spec) > MAX_JOBS:
        raise SpecError(f"this makes more than {MAX_JOBS:,} jobs", hint="split it into several bags")
    market = spec.get("market")
    if isinstance(market, Mapping) and isinstance(prices := market.get("prices"), str):
        spec["market"] = {**market, "prices": os.path.join(folder, prices)}
    kind, fields = _split(spec)
    asked = RunRequest.resolve(None, fields, kind=kind, source=_SOURCE, runs_code=body.mode == "run", folder=folder)
    spec["name"] = asked.spec.name
    place = run_folder(f"{asked.spec.name}-simulated" if body.mode == "simulate" else asked.spec.name, store)
    return place, Submission(spec=spec, mode=body.mode, folder=str(folder), submitted_at=time.time())


def keep(folder: RunFolder, submission: Submission) -> None:
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        write_json(folder.path / FILE, submission)
    except OSError as error:
        raise StorageError(f"cannot write in {folder.path}: {error.strerror}") from error


def kept(folder: RunFolder) -> Submission | None:
    """What was submitted; None for a run that was started without the service."""
    try:
        return read_json(folder.path / FILE, Submission)
    except (OSError, msgspec.DecodeError):
        return None


def all_runs(store: Path) -> Iterator[RunFolder]:
    """Every run in the folder of all runs, begun or not, by name."""
    try:
        found = sorted(path.name for path in home(store).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in found:
        folder = RunFolder(home(store) / name)
        if folder.exists() or (folder.path / FILE).exists():
            yield folder


def drive(folder: RunFolder, *, ending: bool, prompt: CliContext) -> None:
    """Begin or go on with a submitted run, as its file at a prompt would; `ending`: bring it to its end."""
    submission = kept(folder)
    if submission is None:
        raise SpecError(f"nothing was submitted in {folder.path}", hint="submit it to the service")
    if ending:
        conclude(folder)
        return
    kind, fields = _split(submission.spec)
    fields["store"] = folder.path.parent
    with cli_context(prompt):
        begin(None, fields, kind=kind, source=_SOURCE, folder=Path(submission.folder))


def _split(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Study or bag, and the other fields."""
    fields = dict(spec)
    return fields.pop("kind"), fields


def _jobs(spec: Mapping[str, Any]) -> int:
    """How many jobs a spec lists, before any of them is made."""
    over, given = spec.get("over"), spec.get("given")
    listed = math.prod(len(values) for values in over.values() if isinstance(values, list)) if over else 0
    return max(listed, len(given or ()), spec.get("trials") or 0)
