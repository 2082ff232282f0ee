"""BackendBench: what a conformance suite needs to know of the backend under test."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shoestring.testing.backend_rig import SPEEDUP, START, ObservedEvents, Rig, ScriptedProvider
from shoestring.testing.slowness import PATIENCE_S, slowness
from shoestring.world.live.clock import RunClock
from shoestring.world.protocol import Backend


class BackendBench:
    """How to make the backend, what it cannot do, and what must hold at the end of every test."""

    runs_beside = True
    """User code runs in processes of its own, which the controller can interrupt and which outlive it. False for a
    backend that runs it in the controller's process: laws that do not apply there are skipped."""
    runs_gangs = True
    """A trial on several slots is several worker processes, on one machine or more. False where it is only one."""

    def make(self, rig: Rig) -> Backend:
        """A backend on `rig.run_dir`; called again, another instance on the same folder, as after a crash."""
        raise NotImplementedError

    def running(self, rig: Rig) -> Iterable[object]:  # noqa: ARG002
        """The processes of this run that still run, found without the backend."""
        return ()

    def rig(self, tmp_path: Path, function: str = "train", **provider: Any) -> Rig:
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=SPEEDUP / slowness())
        return Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock)

    def observe(self, tmp_path: Path, function: str = "train", **provider: Any) -> ObservedEvents:
        rig = self.rig(tmp_path, function, **provider)
        return ObservedEvents(self.make(rig), rig)

    def needs_separate_process(self) -> None:
        import pytest

        if not self.runs_beside:
            pytest.skip("user code runs in the controller's own process")

    def needs_gangs(self) -> None:
        import pytest

        if not self.runs_gangs:
            pytest.skip("a trial is one worker here, whatever its slots")

    def finish(self, observed: ObservedEvents) -> None:
        """Every test ends with this: nothing may be left that runs or costs money."""
        observed.settle()
        assert list(observed.backend.inventory()) == []
        assert self.left_running(observed) == []
        observed.backend.close()

    def left_running(self, observed: ObservedEvents) -> list[object]:
        """What still runs after processes that are ending have had time to end."""
        until = time.monotonic() + PATIENCE_S
        while (left := list(self.running(observed.rig))) and time.monotonic() < until:
            time.sleep(0.01)
        return left
