"""One run as the service sees it: what was submitted, who drives it, and how far its journal says it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from shoestring.kernel.records import Phase
from shoestring.runs.folder import RunFolder
from shoestring.server.controllers import ControllerProcess
from shoestring.server.journal_follower import Follower, progress_of
from shoestring.server.schemas import ProgressOut, Run, Status
from shoestring.server.submissions import Submission


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """What the fold came to, for others than the thread that folds."""

    progress: ProgressOut | None = None
    phase: Phase = "running"
    goes_on: bool = True
    damage: str = ""

    @classmethod
    def of(cls, follower: Follower) -> RunSnapshot:
        state = follower.state
        return cls(progress_of(state), state.phase, state.goes_on, follower.damage)

    @property
    def begun(self) -> bool:
        return self.progress is not None

    @property
    def concluded(self) -> bool:
        return self.phase == "concluded"


@dataclass(eq=False)
class RunHandle:
    folder: RunFolder
    submission: Submission | None
    driven: ControllerProcess | None = None
    waits: bool = False
    """In the queue."""
    tries: int = 0
    """How often this service has started it anew after its controller crashed."""
    trouble: str = ""
    follower: Follower | None = None
    """Gone again when nobody has asked for long."""
    seen: tuple[float, ...] = ()
    """The journal's files as they were when last looked at."""
    snapshot: RunSnapshot = field(default_factory=RunSnapshot)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by another, when there is news."""
    _answer: bytes | None = None

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def cancelled(self) -> bool:
        return self.submission is not None and self.submission.cancelled

    @property
    def simulated(self) -> bool:
        return self.submission is not None and self.submission.mode == "simulate"

    @property
    def over(self) -> bool:
        """Will nothing happen in it any more, unless somebody asks?"""
        return self.status in ("concluded", "cancelled", "failed", "paused", "parked", "damaged")

    @property
    def status(self) -> Status:
        seen = self.snapshot
        if seen.damage:
            return "damaged"
        if seen.concluded:
            return "concluded"
        if self.cancelled and self.driven is None and (self.simulated or not seen.begun):
            return "cancelled"
        if self.driven is not None or (seen.begun and not self.waits and self.folder.is_driven()):
            return "starting" if not seen.begun else "pausing" if seen.phase in ("pausing", "parking") else "running"
        if self.waits:
            return "queued"
        if not seen.begun:
            return "failed"
        return "paused" if seen.phase == "pausing" else "parked" if seen.phase == "parking" else "interrupted"

    def news(self) -> None:
        """Wake whoever watches; what was answered before is answered no more."""
        self._answer = None
        before, self.changed = self.changed, asyncio.Event()
        before.set()

    def answer(self, ahead: int | None) -> bytes:
        """The run as JSON. Kept while nothing changes: most calls are people's scripts asking for exactly this."""
        settled = self.driven is not None or self.snapshot.concluded
        if self._answer is not None and settled:
            return self._answer
        self._answer = msgspec.json.encode(self.plain(ahead))
        return self._answer

    def plain(self, ahead: int | None) -> Run:
        submission = self.submission
        return Run(
            id=self.id,
            mode="run" if submission is None else submission.mode,
            status=self.status,
            submitted_at=None if submission is None else submission.submitted_at,
            ahead=ahead,
            trouble=self.snapshot.damage or self.trouble,
            progress=self.snapshot.progress,
        )
