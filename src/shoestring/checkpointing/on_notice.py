"""Save when the provider says that the machine goes, and only then.  Paper: SpotTune section III."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.units import show_duration


@dataclass(frozen=True)
class OnNotice:
    """Workers save on a notice by themselves, even with nobody listening; this puts the reason on record."""

    wants: ClassVar[frozenset[Waker]] = frozenset({e.RevocationNoticed})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if not isinstance(event, e.RevocationNoticed):
            return
        left = max(0.0, event.gone_at - event.at)
        for segment in state.segments_on(event.lease):
            if not segment.halting:
                yield d.HaltSegment(
                    segment=segment.id,
                    grace_s=left,
                    why=f"{event.lease} is taken away in {show_duration(left)}: save and leave",
                )
