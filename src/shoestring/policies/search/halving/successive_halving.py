"""Successive halving: all trials take the first rung, the best 1/eta of them take the next, until one or few are left.

A rung is judged when everybody on it has come to rest; trials that failed, diverged or were dropped count as the worst.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.rungs import Halving, Ladder, rung_steps, when_all_are_in
from shoestring.policies.search.samplers.protocol import planned


@dataclass(frozen=True)
class SuccessiveHalving(Halving):
    def ladders(self, state: RunView) -> list[Ladder]:
        spec = state.spec
        steps = rung_steps(self.grace_steps, self.eta, spec.max_steps)
        return [Ladder(steps, self.eta, planned(spec), when_all_are_in, minimize=spec.direction == "minimize")]
