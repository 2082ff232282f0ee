"""Fewer trials on more slots each: how many share the cluster once exploration is over, and how wide each is."""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.policies.search.flex.resources import Resources

EARLIEST_END, LATEST_END = 0.65, 0.85
"""Shares of the time: earlier, too little is known of any trial; later, there is too little left to gain."""


@dataclass(frozen=True)
class Narrowing:
    """At first as many trials as workers fit, then fewer, one in the end."""

    begins: float
    """At this share of the time."""
    widest: int = 16
    """Workers of one trial, at most: each adds less than the one before."""

    def ends(self, resources: Resources, finish_s: float) -> float:
        """So early that one trial, trained alone, still gets from its first to its last step, which takes `finish_s`:
        being the only finalist helps only a trial that then gets further than the others."""
        return min(LATEST_END, max(EARLIEST_END, 1.0 - finish_s / max(1e-9, resources.whole_s)))

    def width(self, resources: Resources, worker: int, alive: int, finish_s: float) -> int:
        """Slots of each finalist: a power of two of workers, so that they fit machines."""
        workers = resources.slots // worker
        gone = (resources.progress - self.begins) / max(1e-9, self.ends(resources, finish_s) - self.begins)
        trials = max(1, round(workers * min(1.0, max(0.0, 1.0 - gone))))
        return worker * min(power_of_two(self.widest), power_of_two(workers // min(trials, alive)))

    def most(self, resources: Resources, worker: int) -> int:
        """Slots of a trial that has the cluster to itself."""
        return worker * power_of_two(min(self.widest, resources.slots // worker))


def power_of_two(number: int) -> int:
    """The largest power of two that is not above it; at least 1."""
    return 1 << (max(1, number).bit_length() - 1)
