"""Save on a preemption notice, and only then.  Paper: SpotTune section III.

Differs from the paper: a notice may be too short for a checkpoint. Trials whose checkpoints would not be written in
time, or for which that is not known yet, also save periodically.
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
    """Workers save on a notice by themselves, even without a controller; this puts the reason on record."""

    every_s: float = 900.0
    """How often trials save for which a notice is too short."""
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
        """Whether it must save without a notice: decided once, and again when the answer changes."""
        segment = state.segments.get(segment_id)
        notice_s = None if segment is None else notice_of(state, segment)
        if segment is None or notice_s is None or segment.halting:
            return
        job = state.jobs[segment.job]
        limit = limit_of(state, job, notice_s)
        if limit is None:
            every_s, why = self.every_s, "not known yet whether a notice is long enough for its checkpoints"
        elif not limit.is_kept:
            size, save, every = show_bytes(limit.size_bytes), show_duration(limit.save_s), show_duration(self.every_s)
            every_s, why = self.every_s, f"{limit.allows}, and its {size} take {save}: also saved every {every}"
        elif job.saves_every_s is None:
            return
        else:  # an order cannot be withdrawn, but it can be postponed beyond the run
            every_s, why = state.spec.deadline_s, f"{limit.allows}, and its are smaller: saved on a notice only"
        first = len(job.checkpoints) == 1  # its reason is worth recording, even for the same interval
        if job.saves_every_s != every_s or first:
            yield d.PlanSaves(segment=segment_id, every_s=every_s, why=why)


def save_and_leave(state: RunView, notice: e.RevocationNoticed) -> Iterator[d.HaltSegment]:
    """Every segment on the machine saves, and stops."""
    left = max(0.0, notice.gone_at - notice.at)
    for segment in state.segments_on(notice.lease):
        if not segment.halting:
            yield d.HaltSegment(
                segment=segment.id,
                grace_s=left,
                why=f"{notice.lease} is preempted in {show_duration(left)}: save and stop",
            )
