"""ASHA: successive halving that waits for nobody. As soon as a trial is among the best 1/eta of those on its rung it
goes on; a place for which there is no such trial gets a new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.climbing import climb
from shoestring.policies.search.halving.rungs import Ladder, as_they_come, rung_steps
from shoestring.policies.search.samplers.protocol import AT_RANDOM, SEARCH_WAKERS, Sampler, planned


@dataclass(frozen=True)
class Asha:
    """With few trials the upper rungs may never hold eta of them. Once nobody else can come, the best of a rung goes
    on all the same: a study ends with at least one trial that was trained to the end."""

    eta: int = 3
    grace_steps: int = 1
    """Every trial gets so many steps before it is compared."""
    sampler: Sampler = AT_RANDOM
    """Where new trials come from."""
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        return climb(state, self, self._ladders, self.sampler)

    def _ladders(self, state: RunView) -> list[Ladder]:
        spec = state.spec
        steps = rung_steps(self.grace_steps, self.eta, spec.max_steps)
        return [Ladder(steps, self.eta, planned(spec), as_they_come, minimize=spec.direction == "minimize")]
