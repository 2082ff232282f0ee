"""Heartbeat: for how long a controller has been silent.

A touched file has the time of some computer's clock, which may be set. So only that it changed counts, and the silence
is measured here, on a clock that stands still while this computer sleeps: the controller may have slept with it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path


class Heartbeat:
    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._mark = 0
        self._since = time.monotonic()

    def silence_s(self) -> float:
        """Seconds since it was last seen touched, at most since this object was made."""
        now = time.monotonic()
        try:
            mark = os.stat(self._path).st_mtime_ns
        except OSError:
            mark = self._mark  # no run folder, no controller: the silence counts from the last heartbeat seen
        if mark != self._mark:
            self._mark, self._since = mark, now
        return now - self._since
