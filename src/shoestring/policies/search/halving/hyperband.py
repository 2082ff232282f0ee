"""Hyperband: successive halving with several first rungs at once, because it is unknown how early trials can be ranked.

A bracket that starts low tries many configurations and trusts early values; the last bracket trains few, all to
max_steps. Brackets share the machines: while one waits for the last trial of a rung, trials of the next one run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.rungs import Halving, Ladder, synchronous_quota
from shoestring.policies.search.samplers.protocol import planned


@dataclass(frozen=True)
class Hyperband(Halving):
    """Differs from the usual form: the user sets the number of trials, so the brackets share it in proportion to their
    usual sizes, instead of being repeated until the budget is spent."""

    def ladders(self, state: RunView) -> list[Ladder]:
        spec = state.spec
        brackets = bracket_steps(spec.max_steps, self.eta, self.grace_steps)
        shares = apportion(planned(spec), [bracket_size(len(brackets), len(steps), self.eta) for steps in brackets])
        return [
            Ladder(steps, self.eta, share, synchronous_quota, minimize=spec.direction == "minimize")
            for steps, share in zip(brackets, shares, strict=True)
        ]


def bracket_steps(max_steps: int, eta: int, grace_steps: int) -> list[tuple[int, ...]]:
    """The rungs of each bracket, the one that starts lowest first."""
    halvings = 0
    while grace_steps * eta ** (halvings + 1) <= max_steps:
        halvings += 1
    return [tuple(max_steps // eta**more for more in range(first, -1, -1)) for first in range(halvings, -1, -1)]


def bracket_size(brackets: int, rungs: int, eta: int) -> int:
    """How many trials Hyperband gives a bracket, so that all brackets cost about the same."""
    return math.ceil(brackets / rungs * float(eta) ** (rungs - 1))


def apportion(trials: int, sizes: list[int]) -> list[int]:
    """Whole numbers in the proportion of the sizes that add up to the trials, by largest remainder."""
    exact = [trials * size / sum(sizes) for size in sizes]
    shares = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(sizes)), key=lambda bracket: (shares[bracket] - exact[bracket], bracket))
    for bracket in by_remainder[: trials - sum(shares)]:
        shares[bracket] += 1
    return shares
