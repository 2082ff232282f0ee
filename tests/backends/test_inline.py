"""The inline backend: everything here, now, and without a trace on disk."""

import sys

import pytest

from shoestring.backends.inline.backend import InlineBackend
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseEnded, SegmentEnded, SegmentStarted
from shoestring.kernel.spec import Code
from shoestring.testing.backend_rig import L0, OFFER, S0, S1, START, ObservedEvents
from shoestring.testing.backend_suite import BackendSuite


@pytest.fixture
def make(tmp_path):
    def make(function=None, code=None, **provider):
        rig = BackendSuite().rig(tmp_path, **provider)
        backend = InlineBackend(
            rig.run_dir,
            code=code or Code(),
            provider=rig.provider,
            clock=rig.clock,
            store=rig.store,
            metric="loss",
            function=function,
            folder=tmp_path,
        )
        story = ObservedEvents(backend, rig)
        story.rent()
        return story

    return make


def report_steps(trial):
    for step in trial.steps():
        trial.report(loss=1.0 / step)


def test_nothing_is_written_unless_something_is_saved(make, tmp_path):
    story = make(report_steps)
    story.start(until_step=3)
    assert story.wait_for(SegmentEnded).cause == "reached"
    assert story.steps() == [1, 2, 3]
    assert list(tmp_path.iterdir()) == []


def test_a_closure_will_do(make):
    seen = []
    story = make(lambda trial: (seen.append(trial["lr"]), trial.report(loss=1.0)))
    story.start(until_step=1, lr=0.1)
    story.wait_for(SegmentEnded)
    assert seen == [0.1]


def test_a_trial_with_many_slots_is_one_worker_here(make):
    seen = []
    story = make(lambda trial: (seen.append((trial.rank, trial.world_size, trial.slots)), trial.report(loss=1.0)))
    story.start(until_step=1, slots=4)
    assert story.wait_for(SegmentEnded).cause == "reached"
    assert seen == [(0, 1, 4)]


def test_a_failure_leaves_its_traceback_in_the_log(make):
    def train(_):
        raise ValueError("no")

    story = make(train)
    story.start()
    assert story.wait_for(SegmentEnded).detail.startswith("ValueError: no (test_inline.py:")
    assert "Traceback" in (story.rig.run_dir / "segments" / S0 / "log.txt").read_text()


def test_segments_run_one_after_the_other_and_a_waiting_one_can_be_halted(make):
    story = make(report_steps)
    story.start(S0)
    story.start(S1)
    story.backend.signal(S1, "halt", 10.0)
    story.wait_for(SegmentEnded, lambda event: event.segment == S0)
    ended = {event.segment: event.cause for event in story.told(SegmentEnded)}
    assert ended == {S0: "reached", S1: "halted"}
    assert [event.segment for event in story.told(SegmentStarted)] == [S0]


def test_a_person_who_wants_out_gets_out_and_the_trial_has_not_failed(make):
    def train(trial):
        trial.report(loss=1.0)
        raise KeyboardInterrupt

    story = make(train)
    story.start()
    with pytest.raises(KeyboardInterrupt):
        story.look()
    ended = story.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail) == ("lost", "interrupted: KeyboardInterrupt")


def test_quitting_the_debugger_is_wanting_out_too(make):
    import bdb

    def train(_):
        raise bdb.BdbQuit

    story = make(train)
    story.start()
    with pytest.raises(bdb.BdbQuit):
        story.look()


def test_a_command_runs_here_too(make, tmp_path):
    (tmp_path / "program.py").write_text(
        "import os, pathlib, sys\n"
        'print(\'{"step": 2, "loss": %s}\' % sys.argv[1])\n'
        "(pathlib.Path(os.environ['SHOESTRING_SAVE_TO']) / 'net').write_text('trained')\n"
        'print(\'{"saved": "net", "step": 2}\')\n'
    )
    story = make(code=Code(command=(sys.executable, "program.py", "{lr}")))
    story.start(until_step=2, lr=0.5)
    ended = story.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail) == ("reached", "")
    assert story.told(JobReported)[0].metrics == {"loss": 0.5}
    story.rig.store.get(story.told(CheckpointSaved)[0].ref, tmp_path / "back")
    assert (tmp_path / "back" / "net").read_text() == "trained"


def test_a_hung_trial_is_noticed_at_the_next_step(make):
    import time

    def train(trial):
        for _ in trial.steps():
            time.sleep(0.05)
            trial.report(loss=1.0)

    story = make(train)
    story.start(until_step=1000, time_limit_s=20)
    ended = story.wait_for(SegmentEnded)
    assert (ended.cause, ended.detail) == ("overran", "still running after its time limit of 20 s")


def test_a_lease_of_an_earlier_process_ended_with_it_and_is_paid_for(make):
    story = make(report_steps)
    request = RequestLease(lease="l5", offer=OFFER, end_by=START + 6000, why="before the crash")
    story.backend.recall(request, START - 50)
    ended = story.wait_for(LeaseEnded)
    assert (ended.lease, ended.cause) == ("l5", "released")
    assert 50 <= ended.charged_usd <= 6050
    assert list(story.backend.inventory()) == [L0]
