"""Which samples make up a data fraction: the same ones in every trial, worker and restart, and nested.

Nested subsets make results on a small fraction informative of a large one: two trials on a quarter differ by their
configurations only, and a sixteenth is contained in the quarter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoestring.errors import ShoestringError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_AS_PRINTED = 1e-3
"""Fractions that differ by less are one: programs print them with a few digits."""


class FractionError(ShoestringError, ValueError):
    """A data fraction that is not possible."""


def subsample(n: int, fraction: float, seed: int) -> NDArray[np.int64]:
    """Indices of a `fraction` of `n` samples (rounded, at least one): the first of a shuffle fixed by the seed."""
    if n < 1:
        raise FractionError(f"cannot subsample {n} samples", hint="subsample(n): n is how many samples there are")
    import numpy as np

    from shoestring.kernel.view import stable_seed

    word = stable_seed(seed, "subsample")
    # RandomState is NumPy's only stream that is the same in all versions: workers of one run may have different ones.
    shuffled = np.random.RandomState([word >> 32, word & 0xFFFFFFFF]).permutation(n)
    return shuffled[: max(1, round(fraction * n))].astype(np.int64, copy=False)


def smaller_fraction(own: float, requested: float) -> float | None:
    """The requested fraction, if it is smaller than the trial's own; None if it is the same."""
    if not 0 < requested <= 1:
        raise FractionError(f"fraction={requested!r} is not a data fraction", hint="more than 0, up to 1")
    if _is_same(requested, own):
        return None
    if requested > own:
        raise FractionError(
            f"fraction={requested:g} is more than this trial's fraction, which is {own:g}",
            hint="report trial.fractions in order, then trial.fraction",
        )
    return requested


def matching(fractions: Sequence[float], reported: float) -> float | None:
    """The requested fraction that equals the reported one up to rounding; None if it was not requested."""
    return next((fraction for fraction in fractions if _is_same(reported, fraction)), None)


def _is_same(fraction: float, other: float) -> bool:
    return math.isclose(fraction, other, rel_tol=_AS_PRINTED)
