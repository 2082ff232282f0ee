"""UnsyncedWrites: what a power cut may leave of a folder. Only what was synced is sure to be there.

After SQLite's tests, which crash on a layer that drops or changes writes that were not synced. A file's content is on
disk when the file was synced, its name when its folder was. File systems differ in what else they store: `drops` is one
that stores nothing else, `empties` one that stores all names, and no content.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

import pytest

Loses = Literal["drops", "empties"]


class UnsyncedWrites:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, os.stat_result]] = {}
        self._held: list[int] = []
        """A synced file is kept open: its number is then given to no other file."""
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fsync(self, fd: int) -> None:
        about, path = os.fstat(fd), Path(f"/proc/self/fd/{fd}")
        self._held.append(os.dup(fd))
        if stat.S_ISDIR(about.st_mode):
            self._names[about.st_ino] = {entry.name: entry.stat(follow_symlinks=False) for entry in os.scandir(path)}
        else:
            self._contents[about.st_ino] = path.read_bytes()

    def leave(self, into: Path, loses: Loses) -> Path:
        """Write what is left after a power cut now."""
        self._copy(self._root, self._root.stat(), into, loses)
        return into

    def _copy(self, path: Path, about: os.stat_result, into: Path, loses: Loses) -> None:
        if not stat.S_ISDIR(about.st_mode):
            into.write_bytes(self._contents.get(about.st_ino, b""))
            return
        into.mkdir()
        names = self._names.get(about.st_ino, {})
        if loses == "empties":
            names = {entry.name: entry.stat(follow_symlinks=False) for entry in os.scandir(path)}
        for name, child in names.items():
            self._copy(path / name, child, into / name, loses)

    def close(self) -> None:
        for fd in self._held:
            os.close(fd)
