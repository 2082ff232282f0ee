"""Slurm backends for the tests."""

import time

from shoestring.backends.folder_post import FolderPost
from shoestring.backends.hosted_machines import HostedMachines
from shoestring.backends.hosted_worker import HostedWorkers
from shoestring.backends.on_market import on_market
from shoestring.backends.processes import ProcessBackend
from shoestring.backends.slurm.gang_job import variables_of
from shoestring.backends.slurm.jobs import SlurmJobs
from shoestring.testing.backend_rig import START, ObservedEvents, Rig, ScriptedProvider
from shoestring.world.live.clock import RunClock
from tests.backends.backends_at_work import processes_of


def on_slurm(rig, partition=None):
    """As `SlurmPlace.open`, also of a partition that does not exist, and where Slurm does not."""
    site = rig.site
    post = FolderPost(site)
    jobs = SlurmJobs(site.run_dir, post, partition)
    machines = on_market(HostedMachines(jobs, post, site.clock), rig.provider, site, grants=False)
    return ProcessBackend(site, machines, HostedWorkers(site.run_dir, post, variables_of), rig.provider)


def jobs_of(run_dir):
    """The jobs of this run as another controller finds them."""
    rig = Rig(run_dir, "train", ScriptedProvider(), RunClock(START, time.time(), speedup=1.0))
    return SlurmJobs(rig.site.run_dir, FolderPost(rig.site))


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
