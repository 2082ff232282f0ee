"""Nodes are launched and ended by the user's commands: once for each lease, in this order, and beside the loop."""

import json
import os
import stat
import time
from pathlib import Path

import pytest

from shoestring.backends.ray.launcher import NodeLauncher
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import LeaseId
from shoestring.market.own import NodeType
from shoestring.testing.slowness import PATIENCE_S

L7 = LeaseId("l7")
SPEAKS = 'echo "$1 $SHOESTRING_NODE $SHOESTRING_RESOURCES" >> {calls}\n'


@pytest.fixture
def launcher(tmp_path):
    """Makes launchers of one run, whose command is a script that notes its calls and then does `script`."""
    (tmp_path / "My Run" / "leases" / L7).mkdir(parents=True)

    def make(script=""):
        file = tmp_path / "node.sh"
        file.write_text("#!/bin/sh\n" + SPEAKS.format(calls=tmp_path / "calls") + script)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        node = NodeType(
            label="spot-c2",
            machine="c2",
            provider="own",
            zone="a",
            spot=True,
            list_usd_per_hour=1.0,
            launch=(str(file), "launch"),
            end=(str(file), "end"),
        )
        return NodeLauncher(tmp_path / "My Run", "00c0ffee", [node]), RequestLease(
            lease=L7, offer=node.offer, end_by=9e9, why="test"
        )

    return make


def calls(tmp_path):
    file = tmp_path / "calls"
    return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def ended(launcher):
    launcher.update()
    return not launcher.has_launched(L7)


def test_the_commands_learn_the_name_of_the_node_and_what_it_announces(launcher, tmp_path):
    nodes, request = launcher()
    nodes.launch(request, "10.0.0.1:6379", end_at=1000.4)
    nodes.launch(request, "10.0.0.1:6379", end_at=1000.4)
    end_by = tmp_path / "My Run" / "leases" / L7 / "end_by"
    assert end_by.read_text() == "1000"
    nodes.keep_until(L7, 2000.0)
    assert end_by.read_text() == "2000"
    nodes.end(L7)
    assert end_by.read_text() == "0", "a machine that watches it ends even if the command fails"
    wait_until(lambda: ended(nodes))
    lines = (tmp_path / "calls").read_text().splitlines()
    assert [line.split(maxsplit=2)[:2] for line in lines] == [
        ["launch", "shoestring-my-run-00c0ffee-l7"],
        ["end", "shoestring-my-run-00c0ffee-l7"],
    ]
    assert json.loads(lines[0].split(maxsplit=2)[2]) == {"lease-l7-00c0ffee": 1, "spot-c2": 1}
    nodes.close()


def test_a_node_ends_only_after_its_launch_has_returned(launcher, tmp_path):
    nodes, request = launcher(
        f'[ $1 = end ] || while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo "$1ed" >> {tmp_path}/calls'
    )
    nodes.launch(request, "10.0.0.1:6379", 1000.0)
    wait_until(lambda: calls(tmp_path))
    nodes.end(L7)
    time.sleep(0.1)
    assert calls(tmp_path) == ["launch"]
    (tmp_path / "go").touch()
    nodes.close()
    assert calls(tmp_path) == ["launch", "launched", "end", "ended"]


def test_a_failed_launch_says_why_and_its_node_is_ended_all_the_same(launcher, tmp_path):
    nodes, request = launcher("[ $1 = end ] || { echo over the quota; exit 3; }")
    nodes.launch(request, "10.0.0.1:6379", 1000.0)
    wait_until(lambda: nodes.failed(L7))
    assert nodes.failed(L7).endswith("node.sh: exit code 3: over the quota")
    nodes.end(L7)
    nodes.close()
    assert calls(tmp_path) == ["launch", "end"]


def test_an_end_that_fails_is_repeated_and_said(launcher, tmp_path, capfd):
    nodes, request = launcher(f"[ $1 = launch ] || [ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; exit 1; }}")
    nodes.launch(request, "10.0.0.1:6379", 1000.0)
    nodes.end(L7)
    wait_until(lambda: ended(nodes))
    nodes.close()
    assert calls(tmp_path) == ["launch", "end", "end"]
    assert "node shoestring-my-run-00c0ffee-l7 could not be ended" in capfd.readouterr().err


def test_a_node_that_cannot_be_ended_is_named_at_the_end_of_the_run(launcher, monkeypatch, capfd):
    monkeypatch.setattr("shoestring.backends.ray.launcher._CLOSE_TIMEOUT_S", 0.5)
    nodes, request = launcher("[ $1 = launch ]")
    nodes.launch(request, "10.0.0.1:6379", 1000.0)
    nodes.end(L7)
    nodes.close()
    assert "l7 may still run and cost money: end it by hand" in capfd.readouterr().err
    assert nodes.has_launched(L7), "the next controller tries again"


def test_the_next_controller_waits_for_a_launch_of_a_killed_one(launcher, tmp_path):
    """As if it was killed: it is never asked again, and its command continues."""
    script = f'while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo "$1ed" >> {tmp_path}/calls'
    killed, request = launcher(script)
    killed.launch(request, "10.0.0.1:6379", 1000.0)
    call = tmp_path / "My Run" / "leases" / L7 / "launcher.json"
    wait_until(call.exists)
    successor, _ = launcher(script)
    assert successor.has_launched(L7)
    successor.launch(request, "10.0.0.1:6379", 1000.0)
    time.sleep(0.1)
    assert calls(tmp_path) == ["launch"]
    (tmp_path / "go").touch()
    successor.end(L7)
    successor.close()
    assert calls(tmp_path)[:2] == ["launch", "launched"]
    assert calls(tmp_path)[-2:] == ["end", "ended"]


def test_a_lease_without_a_launched_node_has_nothing_to_end(launcher, tmp_path):
    nodes, _ = launcher()
    nodes.end(L7)
    nodes.close()
    assert calls(tmp_path) == []
    assert os.listdir(tmp_path / "My Run" / "leases" / L7) == []


def test_a_program_that_is_gone_is_a_failed_launch(launcher, tmp_path):
    nodes, request = launcher()
    Path(tmp_path / "node.sh").unlink()
    nodes.launch(request, "10.0.0.1:6379", 1000.0)
    wait_until(lambda: nodes.failed(L7))
    assert nodes.failed(L7).endswith("node.sh cannot be started: No such file or directory")
