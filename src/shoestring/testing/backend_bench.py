"""The bench on which backends are tried: what a suite of laws needs to know of the backend under test."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shoestring.testing.backend_rig import SPEEDUP, START, ObservedEvents, Rig, ScriptedProvider
from shoestring.world.live.clock import RunClock
from shoestring.world.protocol import Backend


class BackendBench:
    """How to get a backend to try, what it cannot do, and what must be true when a test is over."""

    runs_beside = True
    """User code runs beside the controller, can be interrupted by it and outlives it. Say no for a backend that runs
    it in the controller's own process, and the laws that make no sense there are skipped."""
    runs_gangs = True
    """A trial on several slots is several worker processes, on one machine or more. Say no where there is only one."""

    def make(self, rig: Rig) -> Backend:
        """A backend on `rig.run_dir`; called again, another instance on the same folder, as after a crash."""
        raise NotImplementedError

    def running(self, rig: Rig) -> Iterable[object]:  # noqa: ARG002
        """What of this run still runs, seen without asking the backend."""
        return ()

    def rig(self, tmp_path: Path, function: str = "train", **provider: Any) -> Rig:
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=SPEEDUP)
        return Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock)

    def story(self, tmp_path: Path, function: str = "train", **provider: Any) -> ObservedEvents:
        rig = self.rig(tmp_path, function, **provider)
        return ObservedEvents(self.make(rig), rig)

    def needs_company(self) -> None:
        import pytest

        if not self.runs_beside:
            pytest.skip("user code runs in the controller's own process: nothing goes on beside it")

    def needs_gangs(self) -> None:
        import pytest

        if not self.runs_gangs:
            pytest.skip("a trial is one worker here, whatever its slots")

    def over(self, story: ObservedEvents) -> None:
        """Every test ends here: nothing may be left that runs or costs money."""
        story.settle()
        assert list(story.backend.inventory()) == []
        assert self.left_running(story) == []
        story.backend.close()

    def left_running(self, story: ObservedEvents) -> list[object]:
        """What still runs when what was about to end has had the time to."""
        until = time.monotonic() + 5.0
        while (left := list(self.running(story.rig))) and time.monotonic() < until:
            time.sleep(0.01)
        return left
