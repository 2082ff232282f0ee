"""ASHA: asynchronous successive halving. A trial is promoted as soon as it is in the top 1/eta of its rung; if no trial
can be promoted, a free slot gets a new one."""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.rungs import Halving, Ladder, asynchronous_quota, rung_steps
from shoestring.policies.search.samplers.protocol import planned


@dataclass(frozen=True)
class Asha(Halving):
    """With few trials the upper rungs may never hold eta of them. Once no more can arrive, the best of a rung is
    promoted all the same: a study ends with at least one trial that was trained to max_steps."""

    def ladders(self, state: RunView) -> list[Ladder]:
        spec = state.spec
        steps = rung_steps(self.grace_steps, self.eta, spec.max_steps)
        return [Ladder(steps, self.eta, planned(spec), asynchronous_quota, minimize=spec.direction == "minimize")]
