"""Fewer and fewer trials, wider and wider: how many share the cluster once exploring is over, and how wide each is."""

from __future__ import annotations

from dataclasses import dataclass

from shoestring.search.flex_means import Means


@dataclass(frozen=True)
class Narrowing:
    """Half as many trials as slots at first, one in the end."""

    begins: float
    ends: float = 0.95
    widest: int = 16
    """Workers of one trial, at most: each adds less than the one before."""

    def width(self, means: Means, worker: int, alive: int) -> int:
        """Slots that each of the finalists may have: a power of two of workers, so that they fit machines."""
        workers = means.slots // worker
        gone = (means.progress - self.begins) / max(1e-9, self.ends - self.begins)
        trials = max(1, round(workers / 2 * min(1.0, max(0.0, 1.0 - gone))))
        return worker * min(power_of_two(self.widest), power_of_two(workers // min(trials, alive)))


def power_of_two(number: int) -> int:
    """The largest that is not above it; 1 at the least."""
    return 1 << (max(1, number).bit_length() - 1)
