"""Ctrl-C and SIGTERM as a request to pause: save, release the machines, be ready to resume."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Was a pause requested by a signal?"""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def pausing_on_signals(request_pause: Callable[[], None] | None) -> Iterator[Interruption]:
    """The first signal requests a pause, the second exits immediately: machines then end with their prepaid time.
    Only the main thread may catch signals; elsewhere, and without `request_pause`, the handlers stay as they were."""
    interruption = Interruption()
    if request_pause is None or threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def caught(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if interruption.requested:
            raise KeyboardInterrupt
        interruption.requested = True
        sys.stderr.write("\nSaving trials and releasing machines; press again to exit immediately.\n")
        request_pause()

    before = {number: signal.signal(number, caught) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
