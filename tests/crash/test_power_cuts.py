"""A power cut loses what was not synced: what a backend was ordered, and what it has said, is still there after it."""

import dataclasses

import msgspec
import pytest

from shoestring.host.process import WorkerProcess
from shoestring.kernel.events import LeaseEnded
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.backend_rig import L0, L1, S0, ObservedEvents
from shoestring.testing.backend_suite import BackendSuite
from shoestring.worker.outbox import Ended, Outbox, Reported, Tail
from shoestring.worker.task import CONTROL, OUTBOX, PID, TASK, Control, Task, read_json, write_json
from tests.backends.backends_at_work import local
from tests.crash.unsynced import UnsyncedWrites

LOSES = ("drops", "empties")


@pytest.fixture
def disk(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    disk = UnsyncedWrites(tmp_path / "run", monkeypatch)
    yield disk
    disk.close()


@pytest.fixture
def observed(tmp_path, disk, monkeypatch):  # noqa: ARG001
    """A backend whose workers never start: their computer has no power."""
    monkeypatch.setattr(WorkerProcess, "start", lambda _: None)
    rig = dataclasses.replace(BackendSuite().rig(tmp_path, "train"), run_dir=tmp_path / "run")
    return ObservedEvents(local(rig), rig)


def successor(observed, folder):
    rig = dataclasses.replace(observed.rig, run_dir=folder)
    return ObservedEvents(local(rig), rig)


@pytest.mark.parametrize("loses", LOSES)
def test_what_a_backend_was_ordered_survives_a_power_cut(observed, disk, tmp_path, loses):
    observed.rent(L0)
    observed.rent(L1)
    observed.start(S0)
    observed.backend.release(L1)
    left = disk.leave(tmp_path / "left", loses)
    assert read_json(left / "segments" / S0 / TASK, Task) == read_json(tmp_path / "run/segments" / S0 / TASK, Task)
    assert read_json(left / "segments" / S0 / CONTROL, Control).end_by > 0
    after = successor(observed, left)
    assert list(after.backend.inventory()) == [L0]
    after.poll()
    observed.poll()
    ended, before = after.seen(LeaseEnded), observed.seen(LeaseEnded)
    assert [(e.lease, e.charged_usd) for e in ended] == [(e.lease, e.charged_usd) for e in before]


@pytest.mark.parametrize("loses", LOSES)
def test_a_run_is_as_before_or_after_an_order_whenever_the_power_is_cut(observed, disk, tmp_path, loses, monkeypatch):
    """Cut at every moment at which something is synced, and just before it."""
    cuts = []
    synced = disk._fsync

    def cut_and_sync(fd):
        for _ in range(2):
            cuts.append(disk.leave(tmp_path / f"left{len(cuts)}", loses))
            synced(fd)

    monkeypatch.setattr("os.fsync", cut_and_sync)
    observed.rent(L0)
    observed.start(S0)
    monkeypatch.setattr("os.fsync", synced)
    assert len(cuts) > 20
    for left in cuts:
        after = successor(observed, left)
        assert set(after.backend.inventory()) <= {L0}
        after.poll()


@pytest.mark.parametrize("loses", LOSES)
def test_a_signature_survives_a_power_cut(disk, tmp_path, loses):
    write_json(tmp_path / "run" / PID, {"pid": 17, "birth": "3"})
    left = disk.leave(tmp_path / "left", loses)
    assert msgspec.json.decode((left / PID).read_bytes()) == {"pid": 17, "birth": "3"}


def test_the_end_of_a_trial_survives_a_power_cut(disk, tmp_path):
    outbox = Outbox(tmp_path / "run" / OUTBOX)
    outbox.report(3, {"loss": 0.5})
    outbox.write(Ended(wall=1.0, step=3, cause="reached"))
    left = disk.leave(tmp_path / "left", "empties")
    assert [type(line) for line in Tail(left / OUTBOX).read()] == [Reported, Ended]


@pytest.mark.parametrize("loses", LOSES)
def test_a_checkpoint_survives_a_power_cut(disk, tmp_path, loses):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "weights").write_text("many")
    ref = DirectoryStore(tmp_path / "run" / "checkpoints").put("j0", 3, tmp_path / "net", segment="s0")
    left = disk.leave(tmp_path / "left", loses)
    DirectoryStore(left / "checkpoints").get(ref, tmp_path / "back")
    assert (tmp_path / "back" / "weights").read_text() == "many"
