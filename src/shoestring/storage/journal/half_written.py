"""until_whole: what another computer is writing to a shared file, or a cache shows in part, is looked at again.

Damage lasts; this does not. So on a shared file system damage is reported only if it is still there after some seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from shoestring.errors import JournalDamaged

TRIES = 20
PAUSE_S = 0.25
"""Together longer than file systems keep the size of a file in a cache: 1 to 3 s."""

T = TypeVar("T")


def tries() -> Iterator[bool]:
    """Once for each try, with a pause between them; true for the last one."""
    for number in range(1, TRIES):
        yield False
        time.sleep(PAUSE_S * min(1.0, number / 4))
    yield True


def until_whole(look: Callable[[], T]) -> T:
    for is_last in tries():
        try:
            return look()
        except JournalDamaged:
            if is_last:
                raise
    raise AssertionError("the last try returns or raises")
