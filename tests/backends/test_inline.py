"""The inline backend: everything in this process, at once, and without files on disk."""

import sys
from dataclasses import replace

import pytest

from shoestring.backends.inline.place import InlinePlace
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseEnded, SegmentEnded, SegmentStarted
from shoestring.kernel.spec import Code
from shoestring.testing.backend_rig import L0, OFFER, S0, S1, START, ObservedEvents
from shoestring.testing.backend_suite import BackendSuite


@pytest.fixture
def make(tmp_path):
    def make(function=None, code=None, **provider):
        rig = BackendSuite().rig(tmp_path, **provider)
        site = replace(rig.site, code=code or Code(), function=function, folder=tmp_path)
        backend = InlinePlace().open(None, site, rig.provider)
        observed = ObservedEvents(backend, rig)
        observed.rent()
        return observed

    return make


def report_steps(trial):
    for step in trial.steps():
        trial.report(loss=1.0 / step)


def test_nothing_is_written_unless_something_is_saved(make, tmp_path):
    observed = make(report_steps)
    observed.start(until_step=3)
    assert observed.wait_for(SegmentEnded).cause == "reached"
    assert observed.steps() == [1, 2, 3]
    assert list(tmp_path.iterdir()) == []


def test_a_closure_can_be_a_training_function(make):
    seen = []
    observed = make(lambda trial: (seen.append(trial["lr"]), trial.report(loss=1.0)))
    observed.start(until_step=1, lr=0.1)
    observed.wait_for(SegmentEnded)
    assert seen == [0.1]


def test_a_trial_with_many_slots_is_one_worker_here(make):
    seen = []
    observed = make(lambda trial: (seen.append((trial.rank, trial.world_size, trial.slots)), trial.report(loss=1.0)))
    observed.start(until_step=1, slots=4)
    assert observed.wait_for(SegmentEnded).cause == "reached"
    assert seen == [(0, 1, 4)]


def test_a_failure_leaves_its_traceback_in_the_log(make):
    def train(_):
        raise ValueError("no")

    observed = make(train)
    observed.start()
    assert observed.wait_for(SegmentEnded).detail.startswith("ValueError: no (test_inline.py:")
    assert "Traceback" in (observed.rig.run_dir / "segments" / S0 / "log.txt").read_text()


def test_segments_run_one_after_the_other_and_a_waiting_one_can_be_halted(make):
    observed = make(report_steps)
    observed.start(S0)
    observed.start(S1)
    observed.backend.signal(S1, "halt", 10.0)
    observed.wait_for(SegmentEnded, lambda event: event.segment == S0)
    ended = {event.segment: event.cause for event in observed.seen(SegmentEnded)}
    assert ended == {S0: "reached", S1: "halted"}
    assert [event.segment for event in observed.seen(SegmentStarted)] == [S0]


def test_a_keyboard_interrupt_is_raised_and_the_trial_has_not_failed(make):
    def train(trial):
        trial.report(loss=1.0)
        raise KeyboardInterrupt

    observed = make(train)
    observed.start()
    with pytest.raises(KeyboardInterrupt):
        observed.poll()
    ended = observed.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail) == ("lost", "interrupted: KeyboardInterrupt")


def test_quitting_the_debugger_is_an_interrupt_too(make):
    import bdb

    def train(_):
        raise bdb.BdbQuit

    observed = make(train)
    observed.start()
    with pytest.raises(bdb.BdbQuit):
        observed.poll()


def test_a_command_runs_here_too(make, tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, pathlib, sys\n"
        'print(\'{"step": 2, "loss": %s}\' % sys.argv[1])\n'
        "(pathlib.Path(os.environ['SHOESTRING_SAVE_TO']) / 'net').write_text('trained')\n"
        'print(\'{"saved": "net", "step": 2}\')\n'
    )
    observed = make(code=Code(command=(sys.executable, "program.py", "{lr}")))
    observed.start(until_step=2, lr=0.5)
    ended = observed.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail) == ("reached", "")
    assert observed.seen(JobReported)[0].metrics == {"loss": 0.5}
    observed.rig.store.get(observed.seen(CheckpointSaved)[0].ref, tmp_path / "back")
    assert (tmp_path / "back" / "net").read_text() == "trained"


def test_the_time_limit_is_checked_at_the_next_step(make):
    import time

    def train(trial):
        for _ in trial.steps():
            time.sleep(0.05)
            trial.report(loss=1.0)

    observed = make(train)
    observed.start(until_step=1000, time_limit_s=20)
    ended = observed.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail) == ("overran", "still running after its time limit of 20 s")


def test_a_lease_of_an_earlier_process_ended_with_it_and_is_billed(make):
    observed = make(report_steps)
    request = RequestLease(lease="l5", offer=OFFER, end_by=START + 6000, why="before the crash")
    observed.backend.recall(request, START - 50)
    ended = observed.wait_for(LeaseEnded)
    assert (ended.lease, ended.cause) == ("l5", "released")
    assert 50 <= ended.charged_usd <= 6050
    assert list(observed.backend.inventory()) == [L0]
