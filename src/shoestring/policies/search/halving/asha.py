"""ASHA: successive halving that waits for nobody. As soon as a trial is among the best 1/eta of those on its rung it
goes on; a place for which there is no such trial gets a new one."""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.rungs import Halving, Ladder, as_they_come, rung_steps
from shoestring.policies.search.samplers.protocol import planned


@dataclass(frozen=True)
class Asha(Halving):
    """With few trials the upper rungs may never hold eta of them. Once nobody else can come, the best of a rung goes
    on all the same: a study ends with at least one trial that was trained to the end."""

    def ladders(self, state: RunView) -> list[Ladder]:
        spec = state.spec
        steps = rung_steps(self.grace_steps, self.eta, spec.max_steps)
        return [Ladder(steps, self.eta, planned(spec), as_they_come, minimize=spec.direction == "minimize")]
