"""How the slots of a stage are allocated to trials: by the plan first, then what is left over."""

from __future__ import annotations

import math
from collections.abc import Sequence


def allocate(slots: int, widths: Sequence[int], planned: Sequence[int], most_trials: float) -> list[int]:
    """Trials of each width, narrowest first, on so many slots; never fewer than planned, and one at least.

    Free slots go to more trials, in the bracket that has the fewest slots so far, because SEER gives brackets equal
    shares. When there may be no more trials (at most half of the previous stage is promoted), or no slots for one,
    trials are moved to the next wider bracket, and to wider ones than the plan had.
    """
    counts = list(planned) if any(planned) else [1, *planned[1:]]
    free = slots - sum(n * p for n, p in zip(counts, widths, strict=True))
    brackets = max((i + 1 for i, n in enumerate(planned) if n), default=1)
    while sum(counts) < most_trials and free >= widths[0]:
        i = min((i for i in range(brackets) if widths[i] <= free), key=lambda i: (counts[i] * widths[i], i))
        counts[i] += 1
        free -= widths[i]
    while (grows := _widest_that_can_grow(counts, widths, free)) is not None:
        counts[grows] -= 1
        counts[grows + 1] += 1
        free -= widths[grows + 1] - widths[grows]
    return counts


def fewer(slots: int, widths: Sequence[int], planned: Sequence[int]) -> list[int]:
    """As many of the planned trials as fit: the bracket with the most slots loses one, repeatedly; the last trial of
    all is made narrower instead."""
    counts = list(planned)
    while sum(n * p for n, p in zip(counts, widths, strict=True)) > slots:
        i = max(range(len(widths)), key=lambda i: (counts[i] * widths[i], -i))
        if sum(counts) == 1 and i == 0:
            break
        counts[i] -= 1
        if not any(counts):
            counts[i - 1] = 1
    return counts


def widths_up_to(p_max: float, widths: Sequence[int], nu: float, slots: int) -> list[int]:
    """The widths of the brackets, and wider ones, each nu times the one before, that fit on one machine."""
    more = list(widths)
    while nu > 1 and (wider := max(more[-1] + 1, math.floor(more[-1] * nu))) <= min(p_max, slots):
        more.append(wider)
    return more


def _widest_that_can_grow(counts: Sequence[int], widths: Sequence[int], free: int) -> int | None:
    for i in reversed(range(len(widths) - 1)):
        if counts[i] and widths[i + 1] - widths[i] <= free:
            return i
    return None
