"""The Ray backend satisfies the laws of backends."""

import time

import pytest

from shoestring.testing.backend_rig import START, Rig, ScriptedProvider
from shoestring.testing.backend_suite import BackendSuite
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
        """A clock slow enough for actors, which take seconds to start."""
        clock = RunClock(started_at=START, wall_at=time.time(), speedup=40.0)
        return Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock)

    def make(self, rig: Rig):
        backend = on_cluster(rig, self.cluster)
        backend._nodes.ensure_ready()  # some leases of these tests are shorter than it takes to connect
        return backend

    def running(self, rig: Rig):
        """An order takes a moment to reach another machine."""
        until = time.monotonic() + 1.0
        while (found := processes_of(rig.run_dir)) and time.monotonic() < until:
            time.sleep(0.05)
        return found
