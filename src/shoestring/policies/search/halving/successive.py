"""Successive halving: all trials run to the first rung, the top 1/eta of them to the next, until one or few are left.

A rung is complete when all its trials have settled; trials that failed, diverged or were pruned rank last.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.rungs import Halving, Ladder, rung_steps, synchronous_quota
from shoestring.policies.search.samplers.protocol import planned


@dataclass(frozen=True)
class SuccessiveHalving(Halving):
    def ladders(self, state: RunView) -> list[Ladder]:
        spec = state.spec
        steps = rung_steps(self.grace_steps, self.eta, spec.max_steps)
        return [Ladder(steps, self.eta, planned(spec), synchronous_quota, minimize=spec.direction == "minimize")]
