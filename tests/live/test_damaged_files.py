"""Files of a run that are empty or full of rubbish: made anew from the journal, or named in a sentence."""

import os
import signal

import pytest

from tests.storm.case import Case, Run, twin
from tests.storm.laws import broken_laws
from tests.storm.storm import clear, until_ready
from tests.storm.victims import by_role

FILES = ("lease.json", "drawn.json", "task.json", "control.json", "pid.json", "clock.json")


CASE = Case(recipe="random", code="function", priced=True, steps=3)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return twin(CASE, tmp_path_factory.mktemp("undisturbed") / "twin")


@pytest.fixture
def started(tmp_path):
    run = Run(CASE, tmp_path / "run")
    run.drive()
    until_ready(run)
    yield run
    clear(run)


def kill_controller(run):
    run.controller.kill()
    run.controller.wait()


def damage(run, files, content):
    damaged = [path for name in files for path in run.folder.path.rglob(name)]
    for path in damaged:
        path.write_bytes(content)
    return {path.name for path in damaged}


@pytest.mark.parametrize("content", [b"", b'{"request": {"lea'], ids=["empty", "half"])
def test_a_run_whose_files_are_damaged_ends_as_if_they_were_not(started, undisturbed, content):
    """A power cut: no process is left."""
    kill_controller(started)
    clear(started)
    assert damage(started, FILES, content) == set(FILES)
    assert started.finish() == 0, started.said
    assert list(broken_laws(started, undisturbed)) == []
    assert "lease.json.damaged" in started.said
    assert "made anew from the journal" in started.said


@pytest.mark.parametrize("names", [FILES[:2], FILES[2:4], FILES[4:]], ids=" and ".join)
def test_workers_that_run_are_adopted_although_files_are_damaged(started, undisturbed, names):
    kill_controller(started)
    assert damage(started, names, b"") == {*names}
    assert started.finish() == 0, started.said
    assert list(broken_laws(started, undisturbed)) == []


def test_a_place_that_cannot_be_read_is_named(started):
    kill_controller(started)
    damage(started, ["place.json"], b"")
    started.drive()
    started.controller.wait()
    assert started.controller.returncode == 1
    assert f"{started.folder.place} cannot be read, so the market of this run is not known" in started.said
    for roles in by_role(started).values():
        os.kill(roles.get("supervisor", roles.get("controller")), signal.SIGKILL)
