"""One run as the service sees it: what was submitted, its controller, and its progress by the journal."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec

from shoestring.kernel.records import Phase
from shoestring.kernel.types import EndReason
from shoestring.runs.folder import RunFolder
from shoestring.server.controllers import ControllerProcess
from shoestring.server.journal_follower import Follower, progress_of
from shoestring.server.schemas import ProgressOut, Run, ServicePhase, ServiceStatus
from shoestring.server.submissions import Submission


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The state of the fold, for other threads than the one that folds."""

    progress: ProgressOut | None = None
    phase: Phase = "running"
    end_reason: EndReason | None = None
    active: bool = True
    damage: str = ""

    @classmethod
    def of(cls, follower: Follower) -> RunSnapshot:
        state = follower.state
        return cls(progress_of(state), state.phase, state.end_reason, state.active, follower.damage)

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
    """How often this service has restarted it after its controller crashed."""
    trouble: str = ""
    follower: Follower | None = None
    """Dropped when it is not used for long."""
    seen: tuple[float, ...] = ()
    """Stat of the journal's files when they were last read."""
    snapshot: RunSnapshot = field(default_factory=RunSnapshot)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by another, when the run changes."""
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
        """Is it inactive until the user resumes it, or for good?"""
        return self.phase in ("concluded", "cancelled", "failed", "paused", "parked", "damaged")

    @property
    def status(self) -> ServiceStatus:
        """For scripts: the words of `report.status`, and three that only a service has."""
        match self.phase:
            case "concluded":
                return self.snapshot.end_reason or "completed"
            case "pausing":
                return "running"  # it still holds machines
            case "interrupted":
                return "paused"
            case "parked":
                return "failed"
            case phase:
                return phase

    @property
    def phase(self) -> ServicePhase:
        """Where the run is in its life, in more words than a script needs."""
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

    def notify(self) -> None:
        """Wake the watchers; the cached answer is dropped."""
        self._answer = None
        before, self.changed = self.changed, asyncio.Event()
        before.set()

    def answer(self, ahead: int | None) -> bytes:
        """The run as JSON. Cached while nothing changes: most calls are scripts that poll exactly this."""
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
            phase=self.phase,
            submitted_at=None if submission is None else submission.submitted_at,
            ahead=ahead,
            trouble=self.snapshot.damage or self.trouble,
            progress=self.snapshot.progress,
        )
