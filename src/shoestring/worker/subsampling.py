"""Which samples make up a part of the data: the same ones in every trial, worker and restart, each part in the next.

Parts that are nested are what makes a small one tell of a large one: two trials on a quarter differ by their
configurations only, and what was learned from a sixteenth is still true of the quarter that it is in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoestring.errors import ShoestringError
from shoestring.kernel.view import stable_seed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AS_PRINTED = 1e-3
"""Fractions that differ by less are one: programs print them with a few digits."""


class FractionError(ShoestringError, ValueError):
    """A part of the data that there cannot be."""


def subsample(n: int, fraction: float, seed: int) -> NDArray[np.int64]:
    """The first of `n` samples, shuffled by the seed alone: `fraction` of them, to the nearest, and one at least."""
    if n < 1:
        raise FractionError(f"there is no part of {n} samples", hint="subsample(n): n is how many samples there are")
    import numpy as np

    word = stable_seed(seed, "subsample")
    # The one stream of NumPy that is the same in all its versions: workers of one run may have different ones.
    shuffled = np.random.RandomState([word >> 32, word & 0xFFFFFFFF]).permutation(n)
    return shuffled[: max(1, round(fraction * n))].astype(np.int64, copy=False)


def part_of(own: float, asked: float) -> float | None:
    """The smaller part that is asked for; None if it is all that there is."""
    if not 0 < asked <= 1:
        raise FractionError(f"fraction={asked!r} is no part of the data", hint="more than 0, up to 1")
    if _is_same(asked, own):
        return None
    if asked > own:
        raise FractionError(
            f"fraction={asked:g} is more than this trial has, which is {own:g} of the data",
            hint="go through trial.fractions, then all of trial.fraction",
        )
    return asked


def among(fractions: Sequence[float], part: float) -> float | None:
    """Which of these is meant? None: nobody wants to know of this part."""
    return next((fraction for fraction in fractions if _is_same(part, fraction)), None)


def _is_same(fraction: float, other: float) -> bool:
    return math.isclose(fraction, other, rel_tol=_AS_PRINTED)
