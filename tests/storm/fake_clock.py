"""FakeClock: sets the clock of all processes of a run (`clock_shim`), and knows how much time has really passed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

SHIM = Path(__file__).with_name("clock_shim")
JUMPS_S = (-3600.0, -30.0, 30.0, 3600.0)


class FakeClock:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._off_s = 0.0
        self.slept_s = self.longest_sleep_s = 0.0
        self._began = time.monotonic()
        self._write()

    def jump(self, seconds: float) -> None:
        """The wall clock is set."""
        self._off_s += seconds
        self._write()

    def sleep(self, seconds: float) -> None:
        """The computer was suspended for so long."""
        self.slept_s += seconds
        self.longest_sleep_s = max(self.longest_sleep_s, seconds)
        self._write()

    def passed_s(self) -> float:
        """Time since the start, whatever the wall clock says."""
        return time.monotonic() - self._began + self.slept_s

    def environment(self) -> Mapping[str, str]:
        path = os.pathsep.join(filter(None, (str(SHIM), os.environ.get("PYTHONPATH"))))
        return {"STORM_CLOCK": str(self._file), "PYTHONPATH": path}

    def _write(self) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{self._off_s} {self.slept_s}")
        fresh.replace(self._file)
