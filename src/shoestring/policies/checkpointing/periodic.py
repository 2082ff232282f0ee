"""Save periodically, for preemptions without a notice and notices too short for the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.checkpointing.on_notice import save_and_leave
from shoestring.units import show_duration


@dataclass(frozen=True)
class Periodic:
    """The worker keeps to the interval by itself, so it saves even while the controller is dead. It saves on a notice
    too."""

    every_s: float = 900.0
    wants: ClassVar[frozenset[Waker]] = frozenset({d.StartSegment, e.RevocationNoticed})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        for decision in list(state.decided):
            if isinstance(decision, d.StartSegment):
                yield d.PlanSaves(
                    segment=decision.segment,
                    every_s=self.every_s,
                    why=f"saves every {show_duration(self.every_s)}: a preemption loses no more than that",
                )
        if isinstance(event, e.RevocationNoticed):
            yield from save_and_leave(state, event)
