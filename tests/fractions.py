"""A search for tests that only wants to know what happens: one trial on each part of the data, all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Policy, Waker
from shoestring.kernel.types import Config
from shoestring.kernel.view import RunView
from shoestring.policies.checkpointing.on_notice import OnNotice
from shoestring.policies.housekeeping.closing import Closing
from shoestring.policies.housekeeping.renewal import Renewal
from shoestring.policies.placement.cheapest import Cheapest


@dataclass(frozen=True)
class OnEachPart:
    config: Config
    wants: ClassVar[frozenset[Waker]] = frozenset({e.RunStarted})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        for part in state.spec.fractions:
            job = state.next_job()
            yield d.AddJob(job=job, config=self.config, fraction=part, why="one of each")
            yield d.RunJob(job=job, until_step=state.spec.max_steps, why="to the end")


def policies(**config: float) -> list[Policy]:
    return [OnEachPart(config), Cheapest(), OnNotice(), Renewal(), Closing()]
