"""The Slurm backend satisfies the laws of backends."""

import time

import pytest

from shoestring.testing.backend_rig import START, Rig, ScriptedProvider
from shoestring.testing.backend_suite import BackendSuite
from shoestring.world.live.clock import RunClock
from tests.backends.backends_at_work import processes_of
from tests.on_slurm.at_work import on_slurm

pytestmark = pytest.mark.heavy


class TestSlurm(BackendSuite):
    @pytest.fixture(autouse=True)
    def _on(self, slurm, request):
        self.slurm = slurm
        # Some leases of these tests last twenty market seconds, in which Slurm has to find a node.
        self.speedup = 4.0 if "extended" in request.node.name else 40.0

    def rig(self, tmp_path, function="train", **provider):
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=self.speedup)
        return Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock)

    def make(self, rig: Rig):
        return on_slurm(rig)

    def running(self, rig: Rig):
        """An order takes a moment to reach another machine."""
        until = time.monotonic() + 3.0
        while (found := processes_of(rig.run_dir)) and time.monotonic() < until:
            time.sleep(0.05)
        return found
