"""Save when the checkpoint programme says so: by the machine's age, the work left and the cost of a save.

After every save the worker receives the next interval. It keeps to it by itself, so it continues with the last one if
the controller dies. A machine that the programme gives up is left right after a save, when nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Segment
from shoestring.kernel.types import SegmentId
from shoestring.kernel.view import RunView
from shoestring.models.speed.job_length import work_left_s
from shoestring.models.speed.latencies import learned_latencies
from shoestring.policies.checkpointing.on_notice import save_and_leave
from shoestring.units import show_duration

if TYPE_CHECKING:
    from shoestring.models.lifetimes.model import LifetimeModel
    from shoestring.models.lifetimes.source import LifetimeSource

UNTIMED_EVERY_S = 900.0
"""Until a job of the run has been timed, for before that the work left is unknown; and on machines of whose lifetimes
nothing is known: such as on demand or one's own, which are lost too."""
LEAST_EVERY_S = 60.0


@dataclass(frozen=True)
class ByLifetime:
    lifetimes: LifetimeSource
    wants: ClassVar[frozenset[Waker]] = frozenset({d.StartSegment, e.CheckpointSaved, e.RevocationNoticed})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        for decision in list(state.decided):
            if isinstance(decision, d.StartSegment):
                yield from self._plan(state, decision.segment, saved=False)
        if isinstance(event, e.CheckpointSaved):
            yield from self._plan(state, event.segment, saved=True)
        elif isinstance(event, e.RevocationNoticed):
            yield from save_and_leave(state, event)

    def _plan(self, state: RunView, segment_id: SegmentId, *, saved: bool) -> Iterator[d.Decision]:
        segment = state.segments.get(segment_id)
        if segment is None or segment.halting:
            return
        leases = [state.leases[lease] for lease in segment.leases]
        listing = state.listings[leases[0].offer]
        model = self.lifetimes.for_offer(state, listing, leases[0].granted_at)
        work_s = _work_left_s(state, segment)
        if model is None or work_s is None or not self.lifetimes.is_known(state, listing):
            if not saved or state.jobs[segment.job].saves_every_s != UNTIMED_EVERY_S:
                reason = "no job has been timed yet" if work_s is None else "nothing is known of how long it will last"
                why = f"saves every {show_duration(UNTIMED_EVERY_S)}: {reason}"
                yield d.PlanSaves(segment=segment.id, every_s=UNTIMED_EVERY_S, why=why)
            return
        ages_s = [max(0.0, state.now - lease.granted_at) for lease in leases if lease.granted_at is not None] or [0.0]
        ahead_s = _next_save_s(state, segment, model, work_s, ages_s)
        left, age = show_duration(work_s), show_duration(max(ages_s))
        if ahead_s is None and saved and state.jobs[segment.job].wanted:
            why = f"{left} of work left on a machine {age} old: a new one is expected to do it sooner"
            yield d.HaltSegment(segment=segment.id, grace_s=state.spec.slice_s, why=why)
        elif ahead_s is None or ahead_s >= work_s:
            if not saved:
                why = f"{left} of work left on a machine {age} old: not worth a save before the end"
                yield d.PlanSaves(segment=segment.id, every_s=max(LEAST_EVERY_S, work_s), why=why)
        else:
            why = f"{left} of work left on a machine {age} old: the next save pays in {show_duration(ahead_s)}"
            yield d.PlanSaves(segment=segment.id, every_s=max(LEAST_EVERY_S, ahead_s), why=why)


def _work_left_s(state: RunView, segment: Segment) -> float | None:
    listing = state.listings[state.leases[segment.leases[0]].offer]
    return work_left_s(state, segment.job, listing, segment.slots)


def _next_save_s(
    state: RunView, segment: Segment, model: LifetimeModel, work_s: float, ages_s: Sequence[float]
) -> float | None:
    """By the age of the youngest, which is lost most easily, and the limit of the oldest."""
    from shoestring.models.lifetimes.checkpoint_schedule import Costs, schedule_for

    costs = Costs(_rounded(save_s(state, state.jobs[segment.job])), _rounded(learned_latencies(state).restart_s))
    return schedule_for(model, work_s, costs, ages_s).next_save_s(work_s, min(ages_s))


def save_s(state: RunView, job: Job) -> float:
    """Of its latest save; until there is one, of those of others."""
    return learned_latencies(state).save_s if job.last_save is None else job.last_save.took_s


def _rounded(seconds: float) -> float:
    """To the nearest of few sizes, a quarter apart: a programme is solved for each distinct value."""
    return 1.25 ** round(log(max(seconds, 0.1), 1.25))
