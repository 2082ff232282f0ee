"""A real study on Ray nodes of this machine, under an accelerated market, with kill -9 of nodes and controllers."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoestring.kernel.events import LeaseEnded
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.worker.task import read_json
from tests.live.test_killed_controllers import (
    every_acknowledged_checkpoint_is_whole,
    no_segment_reported_a_step_twice,
)

pytest.importorskip("ray")
pytestmark = pytest.mark.heavy

STUDY = Path(__file__).with_name("restless_study.py")
KILLS = ("node", "controller", "node", "controller")


def controller(store, *options, study=STUDY):
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from shoestring.cli import main; main()",
            "run",
            str(study),
            "--store",
            str(store),
            *options,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"MAY_END": str(store / "may_end")},
    )


def finish(process):
    _, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors.decode()


def session_of(pid):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            if os.getsid(int(name)) == pid and state not in "ZX":
                found.append(int(name))
        except OSError:
            continue
    return found


def ray_sessions(folder):
    """Every Ray head and node of this run: its folder, and the running processes of its session."""
    signed = [*folder.path.glob("leases/*/node/pid.json"), *folder.path.glob("ray/head-*/pid.json")]
    return {path.parent: session_of(read_json(path, dict)["pid"]) for path in signed}


def kill_a_node(folder, rng):
    """The whole process tree of a busy one, from outside."""
    nodes = {place: pids for place, pids in ray_sessions(folder).items() if place.name == "node" and len(pids) > 5}
    if not nodes:
        return False
    for pid in nodes[rng.choice(sorted(nodes))]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return True


def test_a_study_on_revoked_and_killed_nodes_ends_like_an_undisturbed_one(tmp_path):
    for store in ("undisturbed", "killed"):
        (tmp_path / store).mkdir()
    (tmp_path / "undisturbed" / "may_end").touch()
    finish(controller(tmp_path / "undisturbed", "--on", "local"))
    folder = RunFolder(tmp_path / "killed" / "restless")
    rng = random.Random(4)
    process = controller(tmp_path / "killed", "--on", "ray")
    for victim in KILLS:
        try:
            process.wait(8 + 4 * rng.random())
        except subprocess.TimeoutExpired:
            pass
        assert process.poll() is None, f"over before the {victim} was killed: {process.stderr.read().decode()}"
        if victim == "controller":
            process.kill()
            process.wait()
            process.stderr.close()
            process = controller(tmp_path / "killed", "--on", "ray")
        else:
            while not kill_a_node(folder, rng) and process.poll() is None:
                time.sleep(0.2)
    (tmp_path / "killed" / "may_end").touch()
    finish(process)

    study, undisturbed = Study.in_folder(folder), Study.in_folder(RunFolder(tmp_path / "undisturbed" / "restless"))
    state = study.state
    assert state.concluded
    assert (state.best, state.jobs[state.best].best) == (
        undisturbed.state.best,
        undisturbed.state.jobs[state.best].best,
    )
    assert {job.status for job in state.jobs.values()} == {"finished"}
    assert not any(job.failures for job in state.jobs.values())
    assert not state.leases
    assert state.spent_usd <= 5.0
    assert state.now <= state.started_at + 86400.0
    causes = {entry.event.cause for entry in folder.entries() if isinstance(entry.event, LeaseEnded)}
    assert {"lost", "revoked"} <= causes
    assert len(list(folder.path.glob("leases/*/node"))) >= 3
    every_acknowledged_checkpoint_is_whole(folder, tmp_path / "back")
    no_segment_reported_a_step_twice(folder)
    assert not any(ray_sessions(folder).values()), "no head, no node, no actor and no worker is left"


QUICK = """
import shoestring as ss

def train(trial):
    for step in trial.steps():
        trial.report(loss=trial["x"] / step)

if __name__ == "__main__":
    ss.tune(train, space={"x": ss.uniform(0, 1)}, minimize="loss", max_steps=2, trials=8, recipe="random")
"""


def test_a_cluster_that_is_free_of_charge_is_used_whole(tmp_path, cluster):
    (tmp_path / "quick.py").write_text(QUICK)
    finish(controller(tmp_path, "--on", f"ray:{cluster.address}", study=tmp_path / "quick.py"))
    study = Study.in_folder(RunFolder(tmp_path / "quick"))
    assert study.state.concluded
    assert {job.status for job in study.state.jobs.values()} == {"finished"}
    assert (study.spec.max_machines, [listing.slots for listing in study.spec.listings]) == (2, [3])
    assert study.spent == 0
    assert [row.machine for row in study.receipt.rows] == ["ray-node"]
    assert all(set(row.machines) == {"a Ray node"} for row in study.trials)
