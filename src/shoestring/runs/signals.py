"""Ctrl-C and SIGTERM as a wish to pause: save, give the machines back, and be ready to go on."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Has somebody asked to stop?"""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def pausing_on_signals(ask_to_pause: Callable[[], None] | None) -> Iterator[Interruption]:
    """The first signal asks to pause, the second leaves at once: machines then end by themselves when prepaid time
    is over. Only the main thread may catch signals; elsewhere, and with nobody to ask, they stay what they were."""
    interruption = Interruption()
    if ask_to_pause is None or threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def caught(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if interruption.asked:
            raise KeyboardInterrupt
        interruption.asked = True
        sys.stderr.write("\nSaving trials and giving machines back; again to leave at once.\n")
        ask_to_pause()

    before = {number: signal.signal(number, caught) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
