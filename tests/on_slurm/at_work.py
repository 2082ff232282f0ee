"""Slurm backends for the tests."""

import time

from shoestring.backends.slurm.backend import SlurmBackend
from shoestring.backends.slurm.leases import SlurmLeases
from shoestring.testing.backend_rig import START, ObservedEvents, Rig, ScriptedProvider
from shoestring.world.live.clock import RunClock
from tests.backends.backends_at_work import processes_of


def on_slurm(rig, partition=None):
    return SlurmBackend(
        rig.run_dir,
        slurm=SlurmLeases(rig.run_dir, partition, deadman_s=rig.deadman_s),
        code=rig.code,
        provider=rig.provider,
        clock=rig.clock,
        store=rig.store.root,
        metric="loss",
        deadman_s=rig.deadman_s,
    )


def observe_slurm(tmp_path, function="train", *, speedup=20.0, partition=None, **provider):
    clock = RunClock(started_at=START, wall_at=time.time(), speedup=speedup)
    rig = Rig(tmp_path / "run", function, ScriptedProvider(**provider), clock)
    return ObservedEvents(on_slurm(rig, partition), rig)


def nothing_is_left(slurm, run_dir):
    """No job and no process, after a moment."""
    until = time.monotonic() + 15
    while (left := [*slurm.jobs(), *processes_of(run_dir)]) and time.monotonic() < until:
        time.sleep(0.1)
    assert left == []
