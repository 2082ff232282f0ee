"""A clock that a test can set, in every Python process of a run: imported by Python itself from its path at the start.

The file in STORM_CLOCK holds two numbers: by how many seconds the wall clock is off, and how long the computer slept.
The clock of the computer itself must not be set by a test.
"""

import os
import time

_FILE = os.environ.get("STORM_CLOCK")
_time, _clock_gettime, _utime = time.time, time.clock_gettime, os.utime


def _off_and_slept():
    with open(_FILE) as file:
        off, slept = map(float, file.read().split())
    return off, slept


def _fake_time():
    return _time() + sum(_off_and_slept())


def _fake_clock_gettime(clock):
    off, slept = _off_and_slept()
    if clock == time.CLOCK_REALTIME:
        return _clock_gettime(clock) + off + slept
    return _clock_gettime(clock) + (slept if clock == getattr(time, "CLOCK_BOOTTIME", None) else 0.0)


def _fake_utime(path, times=None, **more):
    if times is None and "ns" not in more:
        times = (_fake_time(),) * 2
    _utime(path, times, **more)


if _FILE:
    time.time, time.clock_gettime, os.utime = _fake_time, _fake_clock_gettime, _fake_utime
