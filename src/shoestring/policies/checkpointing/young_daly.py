"""Save at the interval of Young and Daly: optimal for memoryless preemptions, and the usual baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.checkpointing.by_lifetime import LEAST_EVERY_S, UNTIMED_EVERY_S, save_s
from shoestring.policies.checkpointing.on_notice import save_and_leave
from shoestring.units import show_duration

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource


@dataclass(frozen=True)
class YoungDaly:
    lifetimes: LifetimeSource
    mean_life_s: float | None = None
    """None: that of the machine's own lifetime model, which is fair. The literature often assumes an hour."""
    wants: ClassVar[frozenset[Waker]] = frozenset({d.StartSegment, e.RevocationNoticed})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        from shoestring.models.lifetimes.checkpoint_schedule import young_daly_s

        for decision in list(state.decided):
            if isinstance(decision, d.StartSegment):
                lease = state.leases[decision.leases[0]]
                model = self.lifetimes.for_offer(state, state.listings[lease.offer], lease.granted_at)
                if model is None:
                    why = f"saves every {show_duration(UNTIMED_EVERY_S)}: nothing is known of how long it will last"
                    yield d.PlanSaves(segment=decision.segment, every_s=UNTIMED_EVERY_S, why=why)
                    continue
                mean_s = self.mean_life_s or model.mean_s() / len(decision.leases)
                took_s = save_s(state, state.jobs[decision.job])
                every_s = max(LEAST_EVERY_S, young_daly_s(took_s, mean_s))
                why = f"a save takes {show_duration(took_s)}, the mean lifetime is {show_duration(mean_s)}"
                yield d.PlanSaves(segment=decision.segment, every_s=every_s, why=why)
        if isinstance(event, e.RevocationNoticed):
            yield from save_and_leave(state, event)
