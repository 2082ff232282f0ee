"""Which checkpoints to delete: the disk must not fill, and the previous one is kept until the new one is safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import CheckpointRef
from shoestring.kernel.view import RunView


@dataclass(frozen=True)
class Retention:
    """A job keeps its newest few; a pruned job keeps none, unless it is the best so far.

    When the run concludes, what can never be resumed is deleted too: only finished jobs and the best keep their last
    checkpoint, and the others only if a larger budget or a later deadline could resume the run.
    """

    wants: ClassVar[frozenset[Waker]] = frozenset({e.CheckpointSaved, d.DropJob, d.Conclude})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if isinstance(event, e.CheckpointSaved):
            job = state.jobs[event.job]
            keep = state.spec.keep_checkpoints
            if job.status == "pruned" and job.id != state.best:
                yield from _drop(job.checkpoints, "its trial was pruned while it was saving")
            else:
                yield from _drop(job.checkpoints[:-keep], f"{keep} newer ones are safe")
        for decision in list(state.decided):
            if isinstance(decision, d.DropJob) and decision.job != state.best:
                yield from _drop(state.jobs[decision.job].checkpoints, "its trial was pruned")
            elif isinstance(decision, d.Conclude):
                yield from self._tidy(state)

    def _tidy(self, state: RunView) -> Iterator[d.Decision]:
        for job in state.jobs.values():
            if job.checkpoints:
                resumable = bool(state.waiting) and not job.over
                keeps_last = job.status == "finished" or job.id == state.best or resumable
                yield from _drop(job.checkpoints[:-1] if keeps_last else job.checkpoints, "the run is over")


def _drop(refs: Iterable[CheckpointRef], why: str) -> Iterator[d.DropCheckpoint]:
    for ref in list(refs):
        yield d.DropCheckpoint(ref=ref, why=why)
