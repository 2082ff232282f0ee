"""A run whose clock is set, or whose computer sleeps: times and bills are those of a clock that is right."""

import json
import time

import pytest

from shoestring.kernel.events import LeaseEnded, LeaseGranted
from tests.storm.case import Case, Run, twin
from tests.storm.fake_clock import JUMPS_S
from tests.storm.laws import broken_laws
from tests.storm.storm import clear, until_ready

CASE = Case(recipe="random", code="function", priced=False, steps=3)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return twin(CASE, tmp_path_factory.mktemp("undisturbed") / "twin")


@pytest.fixture
def started(tmp_path):
    """A run with machines, that lasts until it may end."""
    run = Run(CASE, tmp_path / "run")
    run.drive()
    until_ready(run)
    yield run
    clear(run)


def laws_of(run, undisturbed):
    assert run.finish() == 0, run.said
    return list(broken_laws(run, undisturbed))


def test_a_run_takes_as_long_as_it_does_however_its_clock_is_set(started, undisturbed):
    for jump in JUMPS_S[:2]:
        started.clock.jump(jump)
        time.sleep(0.2)
    started.controller.kill()
    started.controller.wait()
    for jump in (*JUMPS_S[2:], 3600.0):
        started.drive()
        started.clock.jump(jump)
        time.sleep(0.2)
    started.clock.sleep(40.0)
    assert laws_of(started, undisturbed) == []


def test_after_a_reboot_with_a_wrong_clock_time_does_not_go_back(started, undisturbed):
    started.controller.kill()
    started.controller.wait()
    clear(started)
    point = started.folder.path / "clock.json"
    point.write_text(json.dumps(json.loads(point.read_text()) | {"boot": "an earlier one"}))
    started.clock.jump(-3600.0)
    assert laws_of(started, undisturbed) == []


def test_a_machine_is_billed_for_the_time_it_was_held_when_the_clock_is_set_back(started):
    time.sleep(1.0)
    started.clock.jump(-30.0)
    assert started.finish() == 0, started.said
    events = [entry.event for entry in started.study().entries()]
    granted = {event.lease: event.at for event in events if isinstance(event, LeaseGranted)}
    held = [event.at - granted[event.lease] for event in events if isinstance(event, LeaseEnded)]
    assert max(held) >= 1.0
