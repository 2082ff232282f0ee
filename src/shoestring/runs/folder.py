"""Where runs are stored: `./.shoestring/<name>/`, one folder each, no dates in names.

The same name is the same run: starting it again resumes it. A run leaves nothing but its folder, so moving the folder
aside starts it afresh, and deleting it deletes the run.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from shoestring.errors import SpecError, StorageError
from shoestring.kernel.history import Entry
from shoestring.storage.journal.sqlite import SqliteJournal

HOME = ".shoestring"
HOME_VARIABLE = "SHOESTRING_HOME"
JOURNAL = "journal.sqlite"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
TOKENS, SERVICE_LOCK = "tokens.json", "service.lock"
"""Files of the service, which lie beside the runs: no run can have their names."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    @property
    def place(self) -> Path:
        """Where and on which market the run is: what a controller needs beside the journal to resume."""
        return self.path / "place.json"

    def exists(self) -> bool:
        return self.journal.exists()

    def is_driven(self) -> bool:
        """Is its controller alive, as far as this host can see? The lock beside the journal names its holder."""
        try:
            fields = self.journal.with_name(f"{JOURNAL}.lock").read_text().split()
            pid, host = int(fields[1]), fields[-1]
        except (OSError, ValueError, IndexError):
            return False
        if host != socket.gethostname():
            return True
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # a process of another user, but alive
        return True

    def checkpoint(self, name: str) -> Path:
        """The saved files of a checkpoint."""
        return self.path / "checkpoints" / name / "files"

    @contextmanager
    def reading(self) -> Iterator[Iterator[Entry]]:
        """The entries so far, without disturbing a controller that is writing more."""
        with closing(SqliteJournal.open_readonly(self.journal)) as journal:
            yield journal.read()

    def entries(self) -> Iterator[Entry]:
        with self.reading() as entries:
            yield from entries


def home(given: str | Path | None = None) -> Path:
    """The folder of all runs: as given, else from the environment, else here."""
    return Path(given or os.environ.get(HOME_VARIABLE) or HOME)


def run_folder(name: str, store: str | Path | None = None) -> RunFolder:
    """The folder of the run of that name, whether or not it exists yet."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"name={name!r} cannot be the name of a folder",
            hint="use letters, digits, blanks, '.', '_' and '-', beginning with a letter or digit",
        )
    folder = RunFolder(home(store) / name)
    if name in (TOKENS, SERVICE_LOCK) or folder.path.is_file():
        raise SpecError(
            f"name={name!r} is the name of a file beside the runs, so no run can have it", hint="choose another name"
        )
    return folder


def find_run(name: str | Path | None = None, store: str | Path | None = None) -> RunFolder:
    """An existing run by name or path; without one, the most recently active run."""
    runs = known_runs(store)
    if name is None:
        if not runs:
            raise SpecError(
                f"there is no run in {home(store)}",
                hint="start one with shoestring run FILE, or try shoestring demo",
            )
        return runs[0]
    for folder in (RunFolder(home(store) / name), RunFolder(Path(name))):
        if folder.exists():
            return folder
    names = ", ".join(run.name for run in runs[:8])
    raise SpecError(
        f"there is no run {str(name)!r} in {home(store)}",
        hint=f"there are: {names}" if names else "start one with shoestring run FILE",
    )


def known_runs(store: str | Path | None = None) -> list[RunFolder]:
    """All runs, the most recently active first."""
    try:
        folders = [RunFolder(path) for path in home(store).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((f for f in folders if f.exists()), key=lambda f: (-_last_written(f), f.name))


def set_aside(folder: RunFolder) -> Path:
    """Move a run out of the way, to the first free `<name>.old-N`."""
    number = 1
    while (aside := folder.path.with_name(f"{folder.name}.old-{number}")).exists():
        number += 1
    try:
        folder.path.rename(aside)
    except OSError as error:
        raise StorageError(
            f"cannot move {folder.path} to {aside}: {error.strerror}", hint="choose another name with --name"
        ) from error
    return aside


def _last_written(folder: RunFolder) -> float:
    # SQLite writes to the log beside the journal first, and to the journal itself only now and then.
    files = (folder.journal, folder.journal.with_name(f"{JOURNAL}-wal"))
    return max(path.stat().st_mtime for path in files if path.exists())
