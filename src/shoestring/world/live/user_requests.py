"""What people want of a running study: asked in this process (Ctrl-C), or left on file by another (`stop`)."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Container
from pathlib import Path

import msgspec

from shoestring.kernel.events import Event, UserAsked, Wish
from shoestring.worker.task import read_json, write_json
from shoestring.world.live.clock import RunClock

_LOOK_EVERY_S = 0.2
_KEEP_S = 5.0
"""A wish on file is removed only when its entry in the journal is surely on disk; until then it is known by name."""


class _Note(msgspec.Struct, frozen=True):
    wish: Wish
    wall: float
    budget_usd: float | None = None
    deadline_s: float | None = None


def post_request(
    run_dir: Path, wish: Wish, *, budget_usd: float | None = None, deadline_s: float | None = None
) -> None:
    """Ask something of the controller of this run, whichever process that is, now or later."""
    folder = run_dir / "asked"
    folder.mkdir(parents=True, exist_ok=True)
    note = _Note(wish=wish, wall=time.time(), budget_usd=budget_usd, deadline_s=deadline_s)
    write_json(folder / f"{uuid.uuid4().hex}.json", note)


class UserRequests:
    def __init__(self, clock: RunClock, run_dir: Path | None) -> None:
        self._clock = clock
        self._folder = None if run_dir is None else run_dir / "asked"
        self._asked: deque[UserAsked] = deque()
        self._look_at = 0.0
        self._noted: dict[Path, tuple[float, UserAsked | None]] = {}
        """Notes read, when, and what they said."""

    def ask(self, wish: Wish, budget_usd: float | None, deadline_s: float | None) -> None:
        """Only adds to a deque, so it may be called from any thread and from a signal handler."""
        self._asked.append(UserAsked(at=self._clock.now(), wish=wish, budget_usd=budget_usd, deadline_s=deadline_s))

    def ready(self) -> list[UserAsked]:
        now = time.monotonic()
        if self._folder is not None and now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self._look(self._folder, now)
        asked = []
        while self._asked:
            asked.append(self._asked.popleft())
        return asked

    def close(self, unheard: Container[Event]) -> None:
        """The run has been told, and has written down, all but these: the notes of the others are done with."""
        for path, (_, asked) in self._noted.items():
            if asked is not None and asked not in unheard and asked not in self._asked:
                path.unlink(missing_ok=True)

    def _look(self, folder: Path, now: float) -> None:
        for path in sorted(folder.glob("*.json")):
            if path in self._noted:
                if now - self._noted[path][0] > _KEEP_S:
                    path.unlink(missing_ok=True)
                    del self._noted[path]
                continue
            asked = self._read(path)
            self._noted[path] = (now, asked)
            if asked is not None:
                self._asked.append(asked)

    def _read(self, path: Path) -> UserAsked | None:
        try:
            note = read_json(path, _Note)
        except (OSError, msgspec.DecodeError):
            return None  # not a note of ours
        at = self._clock.at(note.wall)
        return UserAsked(at=at, wish=note.wish, budget_usd=note.budget_usd, deadline_s=note.deadline_s)
