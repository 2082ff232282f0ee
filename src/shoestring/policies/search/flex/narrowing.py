"""Fewer and fewer trials, wider and wider: how many share the cluster once exploring is over, and how wide each is."""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.policies.search.flex.resources import Resources

EARLIEST_END, LATEST_END = 0.65, 0.85
"""Of the time: before, too little is known of anybody; after, there is too little left to gain."""


@dataclass(frozen=True)
class Narrowing:
    """As many trials as workers fit at first, then fewer, one in the end."""

    begins: float
    """At this share of the time."""
    widest: int = 16
    """Workers of one trial, at most: each adds less than the one before."""

    def ends(self, resources: Resources, finish_s: float) -> float:
        """So early that one trial, trained alone, still gets from its beginning to its last step, which takes it
        `finish_s`: a winner who comes no further than the others has won nothing by it."""
        return min(LATEST_END, max(EARLIEST_END, 1.0 - finish_s / max(1e-9, resources.whole_s)))

    def width(self, resources: Resources, worker: int, alive: int, finish_s: float) -> int:
        """Slots that each of the finalists may have: a power of two of workers, so that they fit machines."""
        workers = resources.slots // worker
        gone = (resources.progress - self.begins) / max(1e-9, self.ends(resources, finish_s) - self.begins)
        trials = max(1, round(workers * min(1.0, max(0.0, 1.0 - gone))))
        return worker * min(power_of_two(self.widest), power_of_two(workers // min(trials, alive)))

    def most(self, resources: Resources, worker: int) -> int:
        """Slots that a trial could have if it were alone."""
        return worker * power_of_two(min(self.widest, resources.slots // worker))


def power_of_two(number: int) -> int:
    """The largest that is not above it; 1 at the least."""
    return 1 << (max(1, number).bit_length() - 1)
