"""The time of a run: wall time when it started, and from then on a clock that only goes forward and counts sleep.

The wall clock of a computer may be set: by a person, by NTP after a reboot, by a hypervisor. Bills, deadlines and the
end of prepaid time must not move with it. So all processes of a run on one computer share a fixed point (`clock.json`
in the run's folder) and count from it. A computer that has booted since, or another one, takes one of its own.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import msgspec

from shoestring.errors import DamagedFile
from shoestring.worker.task import read_json, write_json

CLOCK = "clock.json"
_FORWARD = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # elsewhere CLOCK_MONOTONIC counts sleep
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class FixedPoint(msgspec.Struct, frozen=True):
    """A moment in wall time and on the forward clock of one boot of a computer; stored, its fields are for ever."""

    wall: float
    forward: float
    boot: str


class SteadyClock:
    __slots__ = ("_ahead", "_point")

    def __init__(self, point: FixedPoint) -> None:
        self._point = point
        self._ahead = point.wall - point.forward

    @classmethod
    def begin(cls, not_before: float = -math.inf) -> SteadyClock:
        """From the wall time of now."""
        return cls(FixedPoint(max(time.time(), not_before), time.clock_gettime(_FORWARD), _boot_id()))

    @classmethod
    def of_run(cls, folder: Path, not_before: float = -math.inf) -> SteadyClock:
        """The clock of the run in this folder, if it has one of this boot; else from the wall time of now."""
        try:
            point = read_json(folder / CLOCK, FixedPoint)
        except (OSError, DamagedFile):
            return cls.begin(not_before)
        steady = cls(point)
        same_boot = point.boot != "" and point.boot == _boot_id()
        return steady if same_boot and steady.time() >= not_before else cls.begin(not_before)

    def share(self, folder: Path) -> None:
        """Let the other processes of the run use this one."""
        write_json(folder / CLOCK, self._point)

    def time(self) -> float:
        return self._ahead + time.clock_gettime(_FORWARD)


def _boot_id() -> str:
    """Empty where the system has none: then each process has a fixed point of its own."""
    try:
        with open(_BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""
