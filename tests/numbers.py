"""Property tests whose examples are made from one random number, the same numbers every time.

What shrinks and explores in Hypothesis has no hold on a number that only seeds a generator, and takes about half a
millisecond an example: as long as many an example itself.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable


def over_numbers(count: int) -> Callable[[Callable[[int], None]], Callable[[], None]]:
    """The test is called with so many numbers. The one that fails is named, and fails again."""

    def decorate(test: Callable[[int], None]) -> Callable[[], None]:
        @functools.wraps(test)
        def all_of_them() -> None:
            rng = random.Random(test.__name__)
            for _ in range(count):
                number = rng.getrandbits(48)
                try:
                    test(number)
                except BaseException as error:
                    error.add_note(f"{test.__name__}: number {number}")
                    raise

        del all_of_them.__wrapped__  # type: ignore[attr-defined] - pytest would look for a fixture `number`
        return all_of_them

    return decorate
