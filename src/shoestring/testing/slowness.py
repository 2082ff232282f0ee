"""How slow this computer is now, for tests that need real time: what is a second on an idle one is several here."""

from __future__ import annotations

import os
import time

PATIENCE_S = 900.0
"""No wait of a test takes this long anywhere: what has not happened by then never will."""
_BURNT_S = 0.01


def slowness() -> float:
    """How many times as long as alone a process takes: 1 on a computer with a core to spare.

    Measured, since schedulers share cores among groups of processes before they do among processes. The average load
    counts too: a moment may be quieter than the minute it is in.
    """
    began, burnt = time.perf_counter(), time.process_time() + _BURNT_S
    while time.process_time() < burnt:
        pass
    return max(1.0, (time.perf_counter() - began) / _BURNT_S, os.getloadavg()[0] / (os.cpu_count() or 1))
