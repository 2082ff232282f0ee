"""A cluster that grows and shrinks: nodes are launched for leases, told apart by labels, and never left behind."""

import json
import os
import signal
import sys
import time
from contextlib import suppress

import pytest

from shoestring.backends.ray.joined_nodes import JoinedNodes
from shoestring.kernel.decisions import ExtendLease, RequestLease, StartSegment
from shoestring.kernel.events import (
    JobReported,
    LeaseDenied,
    LeaseEnded,
    LeaseGranted,
    RevocationNoticed,
    SegmentEnded,
)
from shoestring.kernel.types import LeaseId
from shoestring.market.own import NodeType, OwnMarket
from shoestring.report.study import Study
from shoestring.runs.drive import read_site
from shoestring.runs.folder import RunFolder
from shoestring.testing.backend_rig import L0, L1, OFFER, S0, START, ObservedEvents, Rig
from shoestring.testing.slowness import PATIENCE_S
from shoestring.worker.task import read_json
from shoestring.world.live.clock import RunClock
from tests.on_ray import local_nodes
from tests.on_ray.at_work import on_cluster
from tests.on_ray.test_study import controller, finish, session_of

pytest.importorskip("ray")
pytestmark = pytest.mark.heavy

SPOT = NodeType(label="spot", machine="small", provider="test", zone="here", spot=True, slots=2, list_usd_per_hour=3.6)


def commands(folder):
    script = [sys.executable, local_nodes.__file__]
    return {"launch": (*script, "launch", str(folder)), "end": (*script, "end", str(folder))}


class LaunchedNodes:
    """What the launcher has done in its folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def calls(self, what):
        file = self.folder / "calls"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [words[1] for words in lines if words[0] == what]

    def processes(self):
        """Those of each node."""
        signed = self.folder.glob("*/pid.json")
        return {path.parent.name: session_of(read_json(path, dict)["pid"]) for path in signed}

    def none_is_left(self):
        assert not any(self.processes().values())
        assert set(self.calls("launch")) <= set(self.calls("end-done"))


@pytest.fixture
def launched(tmp_path):
    launched = LaunchedNodes(tmp_path / "launched")
    yield launched
    for processes in launched.processes().values():
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def observed(tmp_path, cluster, launched):
    clock = RunClock(started_at=START, wall_at=time.time(), speedup=20.0)
    types = [NodeType(**{**_fields(SPOT), "count": 4, **commands(launched.folder)})]
    market = OwnMarket(types, [1.8])
    rig = Rig(tmp_path / "run", "hung", market, clock)
    nodes = JoinedNodes(rig.site.run_dir, cluster.address, market.labels, types)
    observed = ObservedEvents(on_cluster(rig, cluster, nodes), rig)
    observed.nodes = nodes
    yield observed
    observed.settle()
    observed.backend.close()
    launched.none_is_left()


def _fields(node):
    return {name: getattr(node, name) for name in node.__struct_fields__}


def request(observed, lease, for_s=6000.0):
    end_by = observed.rig.clock.now() + for_s
    observed.backend.acquire(RequestLease(lease=lease, offer=OFFER, end_by=end_by, why="test"))


def test_a_node_is_launched_for_a_lease_granted_when_it_joins_and_ended_with_the_lease(observed, launched):
    (launched.folder / "waits").touch()
    request(observed, L0)
    while not launched.calls("launch"):
        observed.poll()
    assert observed.seen(LeaseGranted) == [], "the loop continues meanwhile"
    (launched.folder / "waits").unlink()
    granted = observed.wait_for(LeaseGranted)
    assert granted.billed_from < granted.at, "from when it was launched"
    assert observed.nodes.node(L0).resources["spot"] == 1
    observed.backend.extend(ExtendLease(lease=L0, end_by=granted.at + 20_000, why="test"))
    end_by = int((observed.rig.run_dir / "leases" / L0 / "end_by").read_text())
    assert abs(end_by - observed.rig.clock.wall(granted.at + 20_000)) <= 1
    observed.start(S0, until_step=10)
    observed.wait_for(JobReported)
    observed.backend.release(L0)
    ended = observed.wait_for(LeaseEnded)
    bill = observed.rig.provider.bill(OFFER, None, granted.billed_from, ended.at, "released")
    assert (ended.cause, ended.charged_usd) == ("released", bill.charged_usd)
    while launched.calls("end-done") != launched.calls("launch"):
        observed.poll()
    assert len(launched.calls("launch")) == 1


def test_a_launched_node_that_is_killed_is_a_lost_machine_and_its_launcher_is_told(observed, launched):
    observed.rent(L0)
    observed.start(S0, until_step=10)
    observed.wait_for(JobReported)
    [pids] = launched.processes().values()
    assert len(pids) > 5
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert observed.wait_for(LeaseEnded).cause == "lost"
    assert observed.end_of(S0).cause == "lost"
    kinds = [type(event) for event in observed.events]
    assert kinds.index(RevocationNoticed) < kinds.index(SegmentEnded)
    while not launched.calls("end-done"):
        observed.poll()


def test_a_launch_that_fails_is_denied_with_what_the_launcher_said(observed, launched):
    (launched.folder / "fails").touch()
    request(observed, L0)
    denied = observed.wait_for(LeaseDenied)
    assert denied.reason == "no_capacity"
    assert denied.detail.startswith("its node could not be launched (")
    assert denied.detail.endswith("exit code 1: there are no such machines today)")


def test_a_node_that_does_not_join_in_time_is_denied_and_ended(observed, launched):
    (launched.folder / "idle").touch()
    request(observed, L0, for_s=100)
    assert observed.wait_for(LeaseDenied).detail.startswith("its node did not join the cluster within 1m")
    while not launched.calls("end-done"):
        observed.poll()


def test_leases_get_nodes_of_their_label(tmp_path, cluster):
    clock = RunClock(started_at=START, wall_at=time.time(), speedup=20.0)
    types = [NodeType(**{**_fields(SPOT), "label": label, "zone": label}) for label in ("n1", "n0")]
    market = OwnMarket(types, [1.8, 1.8])
    rig = Rig(tmp_path / "run", "train", market, clock)
    nodes = JoinedNodes(rig.site.run_dir, cluster.address, market.labels, types)
    observed = ObservedEvents(on_cluster(rig, cluster, nodes), rig)
    for lease, node in ((L0, types[0]), (LeaseId("l2"), types[0]), (L1, types[1])):
        observed.backend.acquire(RequestLease(lease=lease, offer=node.offer, end_by=START + 6000, why="test"))
    while len(observed.events) < 3:
        observed.poll()
    assert {event.lease for event in observed.seen(LeaseGranted)} == {L0, L1}
    denied = observed.wait_for(LeaseDenied)
    assert (denied.lease, denied.detail) == ("l2", "no Ray node with n1 is free")
    assert "n1" in nodes.node(L0).resources
    assert "n0" in nodes.node(L1).resources
    observed.settle()
    observed.backend.close()


STUDY = """
import os, time
import shoestring as ss

def train(trial):
    done = int((trial.checkpoint / "done").read_text()) if trial.checkpoint else 0
    for step in trial.steps():
        time.sleep(0.1)
        done += 1
        trial.report(loss=trial["x"] / step, done=done)
        with trial.save() as folder:
            if folder:
                (folder / "done").write_text(str(done))

if __name__ == "__main__":
    ss.tune(
        train, space={"x": ss.uniform(0, 1)}, minimize="loss", max_steps=30, trials=6, recipe="random",
        market="nodes.toml", budget="$5", deadline="4h", options={"checkpointing": "periodic"}, name="grown",
    )
"""


def node_file(folder, launched, **more):
    called = {name: list(command) for name, command in commands(launched.folder).items()}
    fields = {"label": "spot", "machine": "c2-standard-8", "spot": True, "usd_per_hour": 0.1, "slots": 1, "count": 2}
    lines = [f"{name} = {json.dumps(value)}" for name, value in (fields | called | more).items()]
    (folder / "nodes.toml").write_text("\n".join(["[[nodes]]", *lines, ""]))


def wait_for(condition, process):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_controller_killed_in_mid_launch_leaves_no_node_and_launches_none_twice(
    tmp_path, cluster, launched, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grown.py").write_text(STUDY)
    node_file(tmp_path, launched)
    (launched.folder / "waits").touch()

    def start():
        return controller(tmp_path, "--on", f"ray:{cluster.address}", study=tmp_path / "grown.py")

    process = start()
    wait_for(lambda: len(launched.calls("launch")) == 2, process)
    process.kill()  # the commands go on without it
    process.communicate()
    process = start()
    time.sleep(3)
    process.kill()
    process.communicate()
    (launched.folder / "waits").unlink()
    process = start()
    wait_for(lambda: len([pids for pids in launched.processes().values() if len(pids) > 5]) == 2, process)
    folder = RunFolder(tmp_path / "grown")
    wait_for(lambda: any(isinstance(entry.event, JobReported) for entry in folder.entries()), process)
    victim = sorted(launched.processes())[0]
    killed_at = time.time()
    for pid in launched.processes()[victim]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: victim in launched.calls("end-done"), process)
    process.kill()
    process.communicate()
    finish(start())

    study = Study.in_folder(folder)
    assert study.state.concluded
    assert {job.status for job in study.state.jobs.values()} == {"finished"}
    assert not any(job.failures for job in study.state.jobs.values())
    assert [path.name for path in launched.folder.glob("*/pid.json")] == ["pid.json"] * len(
        set(launched.calls("launch"))
    )
    causes = [entry.event.cause for entry in folder.entries() if isinstance(entry.event, LeaseEnded)]
    assert causes.count("lost") == 1
    launched.none_is_left()
    market_at, wall_at = read_site(folder).clock
    starts = [
        entry.event.at
        for entry in folder.entries()
        for decision in entry.decisions
        if isinstance(decision, StartSegment) and victim.rpartition("-")[2] in decision.leases
    ]
    assert max(starts) < market_at + killed_at - wall_at + 0.5, "no trial was started on the dead lease"
