"""Following a journal: the fold is kept in memory and only new entries are folded.

All folding is done in one thread, which alone touches a `Follower`; what it publishes is frozen or bytes. So a status
call costs no fold, no lock and no query, however many there are.
"""

from __future__ import annotations

import math
from contextlib import closing, suppress

from shoestring.errors import ShoestringError
from shoestring.kernel.decisions import Conclude
from shoestring.kernel.state import RunState
from shoestring.report.trials import Tally
from shoestring.runs.folder import RunFolder
from shoestring.runs.progress_line import line_of
from shoestring.server.schemas import Best, ProgressOut
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.storage.journal.sqlite_reader import Mark, SqliteReader

_AFTER_ALL = 1 << 62


class Follower:
    """One run's journal, folded as far as it has been written."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.damage = ""
        """Why the journal cannot be read."""
        self._start_over()

    def _start_over(self) -> None:
        self.tally = Tally()
        self._mark = Mark()
        self._reader: SqliteReader | None = None
        self._inode = 0

    @property
    def state(self) -> RunState:
        return self.tally.state

    def refresh(self) -> None:
        """Fold new entries. A journal that replaced another (a simulation started over) is folded from its start."""
        try:
            inode = self.folder.journal.stat().st_ino
        except FileNotFoundError:
            return
        try:
            if inode != self._inode:
                self.close()
                self._start_over()
                self._reader, self._inode = SqliteJournal.open_readonly(self.folder.journal), inode
            if self._reader is not None:
                for entry in self._reader.read_on(self._mark):
                    self.tally.add(entry)
            self.damage = ""
        except Exception as error:  # an entry that cannot be folded counts as damage; the next refresh starts over
            self.close()
            self._start_over()
            self.damage = str(error) if isinstance(error, ShoestringError) else f"cannot be folded: {error!r}"

    def close(self) -> None:
        """Close the file; the fold stays."""
        if self._reader is not None:
            with suppress(ShoestringError):
                self._reader.close()
            self._reader, self._inode = None, 0


def concludes(folder: RunFolder) -> bool:
    """Does the journal end with the end of the run? Looks at its last entries only: for a service that starts among
    a thousand runs that are over."""
    try:
        with closing(SqliteJournal.open_readonly(folder.journal)) as reader:
            last = reader.mark_before(_AFTER_ALL).seq
            entries = list(reader.read_on(reader.mark_before(last)))
    except ShoestringError:
        return False
    return bool(entries) and any(isinstance(decision, Conclude) for decision in entries[-1].decisions)


def progress_of(state: RunState) -> ProgressOut | None:
    """Progress of a run; None if it has not started."""
    if state.spec is None:
        return None
    spec = state.the_spec
    return ProgressOut(
        kind=spec.kind,
        recipe=spec.recipe,
        trials=max(spec.trials, len(state.jobs)),
        by_status={status: count for status, count in state.by_status.items() if count},
        best=_best(state),
        metric=spec.metric,
        spent_usd=state.spent_usd,
        reserved_usd=state.reserved_usd,
        budget_usd=spec.budget_usd,
        used_s=max(0.0, state.now - state.started_at),
        deadline_s=spec.deadline_s,
        machines=len(state.leases),
        revocations=state.revocations,
        lost_steps=state.lost_steps,
        ending=state.ending,
        entries=state.seq,
        line=line_of(state),
    )


def _best(state: RunState) -> Best | None:
    if state.best is None:
        return None
    job = state.jobs[state.best]
    return Best(trial=job.number, value=job.best if math.isfinite(job.best) else None, config=job.config)
