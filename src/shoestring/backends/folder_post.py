"""FolderPost: the messages between this controller and the hosts of its leases, through a folder that both see.

The folder is the run's, on a file system that all machines share. No machine needs a connection to the controller.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TypeVar

from shoestring.backends.site import Site
from shoestring.host.messages import (
    ALIVE,
    HOSTING,
    LEFT,
    NOTICE,
    ORDERS,
    OVER,
    SIGNED,
    Hosting,
    HostNotice,
    HostSignature,
    Left,
    Order,
    Over,
)
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.worker.task import read_json, write_json

_SILENCE_S = 60.0
"""A host without a heartbeat for this long is given up, whatever its provider says of its machine."""
_SILENT_DEADMANS = 3
"""A worker stops after `deadman_s` without a controller, and is killed after twice that."""
T = TypeVar("T")


class FolderPost:
    def __init__(self, site: Site) -> None:
        self._leases = site.leases
        self._heartbeat = str(site.heartbeat)
        self._silence_s = _SILENT_DEADMANS * site.deadman_s
        self._kept_until: dict[LeaseId, float] = {}
        self._signed: dict[LeaseId, HostSignature] = {}
        self._last_beat: dict[LeaseId, tuple[int, float]] = {}
        """Lease -> the last heartbeat of its host, and when it was first seen on our clock."""

    def folder(self, lease: LeaseId) -> Path:
        return self._leases / lease

    # -- to the host ---------------------------------------------------------------------------------------------------
    def keep_until(self, lease: LeaseId, end_at: float) -> None:
        """Host until then (wall time)."""
        if self._kept_until.get(lease) != end_at:
            self._kept_until[lease] = end_at
            (self.folder(lease) / ORDERS).mkdir(parents=True, exist_ok=True)
            hosting = Hosting(end_at=end_at, heartbeat=self._heartbeat, silence_s=self._silence_s)
            write_json(self.folder(lease) / HOSTING, hosting)

    def dismiss(self, lease: LeaseId) -> None:
        """The host sees this at once, and ends."""
        (self.folder(lease) / HOSTING).unlink(missing_ok=True)

    def is_ordered(self, lease: LeaseId, segment: SegmentId) -> bool:
        return (self.folder(lease) / ORDERS / segment).exists()

    def order(self, lease: LeaseId, segment: SegmentId, folder: Path) -> None:
        """Run the segment, or the part of it, in this folder. An order given again is the same file."""
        write_json(self.folder(lease) / ORDERS / segment, Order(folder=str(folder)))

    # -- from the host -------------------------------------------------------------------------------------------------
    def signed(self, lease: LeaseId) -> HostSignature | None:
        """The host that signed in, if one has."""
        if lease not in self._signed:
            signature = _read(self.folder(lease) / SIGNED, HostSignature)
            if signature is None:
                return None
            self._signed[lease] = signature
        return self._signed[lease]

    def notice(self, lease: LeaseId) -> HostNotice | None:
        return _read(self.folder(lease) / NOTICE, HostNotice)

    def left(self, lease: LeaseId) -> Left | None:
        return _read(self.folder(lease) / LEFT, Left)

    def beat(self, lease: LeaseId) -> int:
        """The time of its last heartbeat, on the clock of the file system."""
        try:
            return os.stat(self.folder(lease) / ALIVE).st_mtime_ns
        except OSError:
            return 0

    def is_silent(self, lease: LeaseId) -> str:
        """In words, if the host signed in and has not been heard for too long."""
        if self.signed(lease) is None:
            return ""
        now, beat = time.monotonic(), self.beat(lease)
        if lease not in self._last_beat or self._last_beat[lease][0] != beat:
            self._last_beat[lease] = beat, now
        silent = now - self._last_beat[lease][1] >= _SILENCE_S
        return f"its node has been silent for {_SILENCE_S:.0f} s" if silent else ""

    @staticmethod
    def exit_reason(folder: Path) -> str | None:
        """Of the worker in this folder, once it has ended without reporting an end itself."""
        over = _read(folder / OVER, Over)
        return None if over is None else over.words


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return read_json(path, kind)
    except FileNotFoundError:
        return None
