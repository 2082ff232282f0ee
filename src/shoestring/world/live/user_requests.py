"""User requests to a running study: from this process (Ctrl-C), or left on file by another (`shoestring stop`)."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Container
from pathlib import Path

import msgspec

from shoestring.errors import DamagedFile
from shoestring.kernel.events import Event, UserAsked, Wish
from shoestring.worker.steady_clock import SteadyClock
from shoestring.worker.task import read_json, write_json
from shoestring.world.live.clock import RunClock

_LOOK_EVERY_S = 0.2
_KEEP_S = 5.0
"""A request on file is removed only when its entry in the journal is surely on disk; until then its name is known."""


class _RequestFile(msgspec.Struct, frozen=True):
    wish: Wish
    wall: float
    budget_usd: float | None = None
    deadline_s: float | None = None


def post_request(
    run_dir: Path, wish: Wish, *, budget_usd: float | None = None, deadline_s: float | None = None
) -> None:
    """Leave a request for the controller of this run, in any process, now or later."""
    folder = run_dir / "asked"
    folder.mkdir(parents=True, exist_ok=True)
    request = _RequestFile(
        wish=wish, wall=SteadyClock.of_run(run_dir).time(), budget_usd=budget_usd, deadline_s=deadline_s
    )
    write_json(folder / f"{uuid.uuid4().hex}.json", request)


class UserRequests:
    def __init__(self, clock: RunClock, run_dir: Path | None) -> None:
        self._clock = clock
        self._folder = None if run_dir is None else run_dir / "asked"
        self._pending: deque[UserAsked] = deque()
        self._look_at = 0.0
        self._read_files: dict[Path, tuple[float, UserAsked | None]] = {}
        """Files read: when, and the request in each."""

    def add(self, wish: Wish, budget_usd: float | None, deadline_s: float | None) -> None:
        """Only adds to a deque, so it may be called from any thread and from a signal handler."""
        self._pending.append(UserAsked(at=self._clock.now(), wish=wish, budget_usd=budget_usd, deadline_s=deadline_s))

    def ready(self) -> list[UserAsked]:
        now = time.monotonic()
        if self._folder is not None and now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self._look(self._folder, now)
        requests = []
        while self._pending:
            requests.append(self._pending.popleft())
        return requests

    def close(self, undelivered: Container[Event]) -> None:
        """All requests but these are recorded in the journal: remove their files."""
        for path, (_, request) in self._read_files.items():
            if request is not None and request not in undelivered and request not in self._pending:
                path.unlink(missing_ok=True)

    def _look(self, folder: Path, now: float) -> None:
        for path in sorted(folder.glob("*.json")):
            if path in self._read_files:
                if now - self._read_files[path][0] > _KEEP_S:
                    path.unlink(missing_ok=True)
                    del self._read_files[path]
                continue
            request = self._read(path)
            self._read_files[path] = (now, request)
            if request is not None:
                self._pending.append(request)

    def _read(self, path: Path) -> UserAsked | None:
        try:
            request = read_json(path, _RequestFile)
        except (OSError, DamagedFile):
            return None  # not a file of ours
        at = min(self._clock.at(request.wall), self._clock.now())  # from a computer whose clock is ahead
        return UserAsked(at=at, wish=request.wish, budget_usd=request.budget_usd, deadline_s=request.deadline_s)
