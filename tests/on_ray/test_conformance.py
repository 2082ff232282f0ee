"""The Ray backend satisfies the laws of backends."""

import os
import time
from pathlib import Path

import pytest

from shoestring.backends.ray.link import look_at
from shoestring.testing.backend_rig import START, Rig, ScriptedProvider
from shoestring.testing.backend_suite import BackendSuite
from shoestring.testing.slowness import slowness
from shoestring.world.live.clock import RunClock
from tests.backends.backends_at_work import processes_of
from tests.on_ray.at_work import on_cluster

pytest.importorskip("ray")
pytestmark = pytest.mark.heavy


class TestRay(BackendSuite):
    @pytest.fixture(autouse=True)
    def _on(self, cluster):
        self.cluster = cluster

    def rig(self, tmp_path, function="train", **provider):
        """A clock slow enough for actors, which take seconds to start. No worker gives its machine back before its
        prepaid time ends."""
        slow = slowness()
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=25.0 / slow)
        return Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock, deadman_s=60.0 * slow)

    def make(self, rig: Rig):
        look_at(self.cluster.address, Path(os.devnull))  # some leases are shorter than it takes to connect at first
        return on_cluster(rig, self.cluster)

    def running(self, rig: Rig):
        """An order takes a moment to reach another machine."""
        until = time.monotonic() + 1.0
        while (found := processes_of(rig.run_dir)) and time.monotonic() < until:
            time.sleep(0.05)
        return found
