"""Repeated kill -9 of the controller of a real run: the study ends like an undisturbed one."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoestring.kernel.decisions import DropCheckpoint
from shoestring.kernel.events import CheckpointSaved, JobReported
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.slowness import PATIENCE_S
from tests.backends.backends_at_work import processes_of

STUDY = Path(__file__).with_name("restless_study.py")


def controller(store, step_s, steps):
    return subprocess.Popen(
        [sys.executable, str(STUDY), str(store), str(step_s), str(steps)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(store, *words):
    store.mkdir(exist_ok=True)
    (store / "may_end").touch()
    process = controller(store, *words)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors.decode()


@pytest.mark.parametrize(
    ("kills", "step_s", "steps"), [(4, 0.02, 20), pytest.param(32, 0.1, 40, marks=pytest.mark.heavy)]
)
def test_a_study_ends_the_same_after_its_controller_is_killed(tmp_path, kills, step_s, steps):
    finish(tmp_path / "undisturbed", 0.0, steps)
    rng = random.Random(kills)
    for number in range(kills):
        process = controller(tmp_path / "killed", step_s, steps)
        try:
            process.wait(0.25 + 0.5 * rng.random())
        except subprocess.TimeoutExpired:
            pass
        else:
            pytest.fail(f"over before kill {number + 1}: {process.stderr.read().decode()}")
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
    finish(tmp_path / "killed", step_s, steps)

    folder = RunFolder(tmp_path / "killed" / "restless")
    study, undisturbed = Study.in_folder(folder), Study.in_folder(RunFolder(tmp_path / "undisturbed" / "restless"))
    state = study.state
    assert state.concluded
    assert [job.config["x"] for job in state.jobs.values()] == [j.config["x"] for j in undisturbed.state.jobs.values()]
    assert (state.best, state.jobs[state.best].best) == (
        undisturbed.state.best,
        undisturbed.state.jobs[state.best].best,
    )
    assert {job.status for job in state.jobs.values()} == {"finished"}
    assert not state.leases
    assert state.spent_usd <= 100.0
    every_acknowledged_checkpoint_is_whole(folder, tmp_path / "back")
    no_segment_reported_a_step_twice(folder)
    until = time.monotonic() + PATIENCE_S
    while processes_of(folder.path) and time.monotonic() < until:
        time.sleep(0.02)
    assert processes_of(folder.path) == {}


def every_acknowledged_checkpoint_is_whole(folder, into):
    saved, dropped = {}, set()
    for entry in folder.entries():
        if isinstance(entry.event, CheckpointSaved):
            saved[entry.event.ref.name] = entry.event.ref
        dropped |= {decision.ref.name for decision in entry.decisions if isinstance(decision, DropCheckpoint)}
    store = DirectoryStore(folder.path / "checkpoints")
    kept = [ref for name, ref in saved.items() if name not in dropped]
    assert kept
    for number, ref in enumerate(kept):
        store.get(ref, into / str(number))


def no_segment_reported_a_step_twice(folder):
    reported = [(e.segment, e.step) for entry in folder.entries() if isinstance(e := entry.event, JobReported)]
    assert len(reported) == len(set(reported))
