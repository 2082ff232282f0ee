"""A worker ends on time by itself: prepaid time, preemption, time limit, dead controller."""

import time

import shoestring.testing.user_code as user_code
from shoestring.worker.outbox import Ended, GaveBack, Reported
from shoestring.worker.task import Control

TRAIN, HUNG = f"{user_code.__file__}:train", f"{user_code.__file__}:hung"


def test_a_trial_saves_and_stops_just_before_its_prepaid_time_ends(worker):
    worker.control = Control(end_by=time.time() + 2.0, lead_s=0.5)
    ended = worker.run(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    assert ended.cause == "halted"
    assert worker.saves() == [ended.step]
    assert ended.wall < worker.control.end_by


def test_a_hung_trial_is_killed_when_its_prepaid_time_ends_and_its_children_with_it(worker):
    worker.control = Control(end_by=time.time() + 1.5, lead_s=0.2)
    ended = worker.run(function=HUNG)
    assert (ended.cause, ended.step, ended.detail) == ("lost", 1, "the machine's prepaid time was over")
    assert 0 <= ended.wall - worker.control.end_by < 0.5
    assert worker.leaves_nothing()


def test_prepaid_time_can_be_extended(worker):
    worker.control = Control(end_by=time.time() + 1.5, lead_s=0.1)
    worker.start(function=TRAIN, config={"step_s": 0.02}, until_step=100)
    worker.wait_for(Reported)
    worker.control = Control(end_by=time.time() + 60)
    worker.update_control()
    assert worker.wait_for(Ended).cause == "reached"


def test_a_trial_stops_between_notice_and_preemption_without_a_controller(worker):
    now = time.time()
    worker.control = Control(end_by=now + 60, notice_at=now + 1.5, gone_at=now + 2.5)
    ended = worker.run(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    assert ended.cause == "halted"
    assert now + 1.5 <= ended.wall < now + 2.5


def test_a_trial_that_ignores_the_notice_is_lost(worker):
    now = time.time()
    worker.control = Control(end_by=now + 60, notice_at=now + 0.4, gone_at=now + 0.6)
    ended = worker.run(function=HUNG)
    assert (ended.cause, ended.detail) == ("lost", "the machine was preempted")


def test_a_trial_over_its_time_limit_overran(worker):
    ended = worker.run(function=HUNG, time_limit_s=0.4)
    assert (ended.cause, ended.detail) == ("overran", "still running after its time limit of 0.4 s")


def test_a_segment_whose_time_was_over_before_its_start_runs_no_user_code(worker):
    worker.control = Control(end_by=time.time() - 1)
    ended = worker.run(function=TRAIN)
    assert (ended.cause, worker.steps()) == ("lost", [])


def test_without_a_controller_for_too_long_the_trial_saves_and_releases_the_machine(worker):
    ended = worker.run(function=TRAIN, config={"step_s": 0.01}, until_step=10_000, deadman_s=1.0)
    assert ended.cause == "halted"
    assert worker.saves() == [ended.step]
    assert len(worker.lines(GaveBack)) == 1


def test_with_heartbeats_the_trial_keeps_running(worker):
    worker.start(function=TRAIN, config={"step_s": 0.02}, until_step=50, deadman_s=0.6)
    while worker.process.poll() is None:
        worker.heartbeat.touch()
        time.sleep(0.05)
    assert worker.ended().cause == "reached"


def test_user_code_does_not_outlive_a_killed_supervisor(worker):
    worker.start(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    worker.wait_for(Reported)
    worker.process.kill()
    worker.process.wait()
    assert worker.leaves_nothing()
