"""Save when the provider says that the machine goes, and only then.  Paper: SpotTune section III.

Differs from the paper: a notice may be too short for a checkpoint. Trials whose checkpoints would not be written in
time, or of whom that is not known yet, also save every so often.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import SegmentId
from shoestring.kernel.view import RunView
from shoestring.policies.checkpointing.notice_limit import limit_of, notice_of
from shoestring.units import show_bytes, show_duration


@dataclass(frozen=True)
class OnNotice:
    """Workers save on a notice by themselves, even with nobody listening; this puts the reason on record."""

    every_s: float = 900.0
    """How often those save for whom a notice is too short."""
    wants: ClassVar[frozenset[Waker]] = frozenset({d.StartSegment, e.CheckpointSaved, e.RevocationNoticed})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        for decision in list(state.decided):
            if isinstance(decision, d.StartSegment):
                yield from self._plan(state, decision.segment)
        if isinstance(event, e.CheckpointSaved):
            yield from self._plan(state, event.segment)
        elif isinstance(event, e.RevocationNoticed):
            yield from save_and_leave(state, event)

    def _plan(self, state: RunView, segment_id: SegmentId) -> Iterator[d.PlanSaves]:
        """Whether it must save without a notice, said once and again when the answer is another."""
        segment = state.segments.get(segment_id)
        notice_s = None if segment is None else notice_of(state, segment)
        if segment is None or notice_s is None or segment.halting:
            return
        job = state.jobs[segment.job]
        limit = limit_of(state, job, notice_s)
        if limit is None:
            every_s, why = self.every_s, "whether a notice is long enough for its checkpoints is not known yet"
        elif not limit.is_kept:
            size, save, every = show_bytes(limit.size_bytes), show_duration(limit.save_s), show_duration(self.every_s)
            every_s, why = self.every_s, f"{limit.allows}, and its {size} take {save}: saved every {every} as well"
        elif job.saves_every_s is None:
            return
        else:  # an order cannot be taken back, but it can be put off until after the run
            every_s, why = state.spec.deadline_s, f"{limit.allows}, and its are smaller: saved on a notice only"
        if job.saves_every_s != every_s or len(job.checkpoints) == 1:  # its first one tells why, if not what
            yield d.PlanSaves(segment=segment_id, every_s=every_s, why=why)


def save_and_leave(state: RunView, notice: e.RevocationNoticed) -> Iterator[d.HaltSegment]:
    """Whatever runs on the machine that is about to go saves, and stops."""
    left = max(0.0, notice.gone_at - notice.at)
    for segment in state.segments_on(notice.lease):
        if not segment.halting:
            yield d.HaltSegment(
                segment=segment.id,
                grace_s=left,
                why=f"{notice.lease} is taken away in {show_duration(left)}: save and leave",
            )
