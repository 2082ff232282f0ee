"""Bags of jobs on a real Slurm, with kill -9 for nodes and for the controller, and on nodes that come and go."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from shoestring.kernel.events import LeaseEnded, SegmentEnded
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.worker.outbox import retrace
from shoestring.worker.task import OUTBOX, TASK, Task, read_json
from tests.live.test_killed_controllers import no_segment_reported_a_step_twice
from tests.on_slurm.a_bag import expected_value
from tests.on_slurm.at_work import nothing_is_left
from tests.on_slurm.small_cluster import wait_until

pytestmark = pytest.mark.heavy

BAG = Path(__file__).with_name("a_bag.py")
DONE = ("reached", "completed")


class Controller:
    """The controller of a bag, which can be killed and restarted."""

    def __init__(self, store, *, on, jobs, step_s, more=()):
        self.folder = RunFolder(store / "bag")
        self._command = [sys.executable, "-c", "from shoestring.cli import main; main()", "run", str(BAG)]
        self._command += ["--store", str(store), "--on", on, *more]
        self._environment = {**os.environ, "JOBS": str(jobs), "STEP_S": str(step_s)}
        self._start()

    def _start(self):
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def run_for(self, seconds):
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise AssertionError(f"over too soon: {self._process.stderr.read().decode()}")

    def kill(self):
        """And start another one."""
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()
        self._start()

    def finish(self):
        _, errors = self._process.communicate(timeout=240)
        assert self._process.returncode == 0, errors.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()


def busy_node(slurm, controller):
    """A node with a running job of ours, and user code in it."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for job in slurm.jobs():
            *_, state, _, node = job.split()
            if state == "RUNNING" and len(slurm.processes_on(node)) > 5:
                return node
        controller.run_for(0.2)
    raise AssertionError("no node is busy")


def every_job_completed_once(folder, jobs):
    state = Study.in_folder(folder).state
    assert state.concluded
    assert {job.config["seed"]: job.values[-1] for job in state.jobs.values()} == {
        n: expected_value(n) for n in range(jobs)
    }
    assert {job.status for job in state.jobs.values()} == {"finished"}
    assert not any(job.failures for job in state.jobs.values())
    assert not state.leases
    no_segment_reported_a_step_twice(folder)
    ends = [entry.event for entry in folder.entries() if isinstance(entry.event, SegmentEnded)]
    assert sum(event.cause in DONE for event in ends) == jobs
    completions = Counter()  # as the workers recorded it, with or without a controller
    for place in folder.path.glob("segments/*"):
        _, ended = retrace(place / OUTBOX)
        completions[read_json(place / TASK, Task).job] += ended is not None and ended.cause in DONE
    assert len(completions) == jobs
    assert set(completions.values()) == {1}


def causes(folder):
    return Counter(entry.event.cause for entry in folder.entries() if isinstance(entry.event, LeaseEnded))


def test_a_hundred_jobs_complete_once_each_while_nodes_and_controllers_are_killed(tmp_path, slurm):
    with Controller(tmp_path, on="slurm", jobs=100, step_s=0.3) as controller:
        controller.run_for(6)
        first = busy_node(slurm, controller)
        slurm.kill_node(first)
        controller.run_for(3)
        controller.kill()
        slurm.start_node(first)
        controller.run_for(5)
        slurm.stop_controller(signal.SIGKILL)  # slurmctld: running jobs continue, and no new ones start
        controller.run_for(3)
        slurm.start_controller()
        second = busy_node(slurm, controller)
        slurm.kill_node(second, mark_down=False)
        controller.run_for(3)
        controller.kill()
        third = busy_node(slurm, controller)
        slurm.kill_node(third)
        slurm.start_node(third)
        wait_until(lambda: slurm.state(second).startswith("down"), "Slurm does not detect a dead node")
        slurm.start_node(second)
        controller.finish()

    every_job_completed_once(controller.folder, 100)
    assert causes(controller.folder)["revoked"] >= 3
    nothing_is_left(slurm, controller.folder.path)


def test_cloud_nodes_are_resumed_for_leases_and_suspended_after_them(tmp_path, slurm):
    with Controller(tmp_path, on="slurm:cloud", jobs=12, step_s=0.3) as controller:
        victim = busy_node(slurm, controller)
        slurm.kill_node(victim)
        controller.finish()
    every_job_completed_once(controller.folder, 12)
    assert causes(controller.folder)["revoked"] == 1
    nothing_is_left(slurm, controller.folder.path)
    came_and_went = {f"{what} {node}" for what in ("resume", "suspend") for node in slurm.cloud}
    wait_until(lambda: slurm.power() == came_and_went, "not all nodes are suspended")
    wait_until(lambda: not any(map(slurm.processes_on, slurm.cloud)), "something is left of a suspended node")
