"""A worker ends on time by itself: prepaid time, preemption, time limit, dead controller.

Times are several times as long on a computer with several times as much to do. What a test waits for is that a trial
has begun; only then does its time run out.
"""

import os
import time

import pytest

import shoestring.testing.user_code as user_code
from shoestring.testing.slowness import PATIENCE_S, slowness
from shoestring.worker.outbox import Ended, GaveBack, Reported
from shoestring.worker.task import Control
from tests.storm.fake_clock import JUMPS_S, FakeClock

TRAIN, HUNG = f"{user_code.__file__}:train", f"{user_code.__file__}:hung"


def begun(worker, **task):
    """A worker whose trial has reported."""
    worker.start(**task)
    worker.wait_for(Reported)
    return worker


def ends_in(worker, seconds, **control):
    """From now on it has this long: `control` in seconds from now, the rest as it is."""
    now = time.time()
    times = {name: value if name == "lead_s" else now + value for name, value in control.items()}
    worker.control = Control(end_by=now + seconds)
    worker.update_control(**times)
    worker.process.wait(PATIENCE_S)
    return now, worker.ended()


def test_a_trial_saves_and_stops_just_before_its_prepaid_time_ends(worker):
    begun(worker, function=TRAIN, config={"step_s": 0.01}, until_step=10**6)
    slow = slowness()
    _, ended = ends_in(worker, 1.2 * slow, lead_s=0.7 * slow)
    assert ended.cause == "halted"
    assert worker.saves() == [ended.step]
    assert ended.wall < worker.control.end_by


def test_a_hung_trial_is_killed_when_its_prepaid_time_ends_and_its_children_with_it(worker):
    begun(worker, function=HUNG)
    _, ended = ends_in(worker, 0.5, lead_s=0.2)
    assert (ended.cause, ended.step, ended.detail) == ("lost", 1, "the machine's prepaid time was over")
    assert 0 <= ended.wall - worker.control.end_by < 0.5 * slowness()
    assert worker.leaves_nothing()


def test_prepaid_time_can_be_extended(worker):
    first = time.time() + 3 * slowness()
    worker.control = Control(end_by=first, lead_s=0.1)
    begun(worker, function=TRAIN, config={"step_s": 0.02}, until_step=10**6)
    worker.control = Control(end_by=first + PATIENCE_S)
    worker.update_control()
    while time.time() < first + 0.3:
        time.sleep(0.05)
    assert worker.process.poll() is None
    assert worker.lines(Ended) == []
    worker.update_control(halt_by=time.time() + PATIENCE_S)
    assert worker.wait_for(Ended).wall > first


def test_a_trial_stops_between_notice_and_preemption_without_a_controller(worker):
    begun(worker, function=TRAIN, config={"step_s": 0.01}, until_step=10**6)
    slow = slowness()
    now, ended = ends_in(worker, PATIENCE_S, notice_at=0.3 * slow, gone_at=1.3 * slow)
    assert ended.cause == "halted"
    assert now + 0.3 * slow <= ended.wall < now + 1.3 * slow


def test_a_trial_that_ignores_the_notice_is_lost(worker):
    begun(worker, function=HUNG)
    _, ended = ends_in(worker, PATIENCE_S, notice_at=0.2, gone_at=0.4)
    assert (ended.cause, ended.detail) == ("lost", "the machine was preempted")


def test_a_trial_over_its_time_limit_overran(worker):
    name = worker.write("slow.py", f"import time\ndef train(trial): time.sleep({10 * slowness()})\n")
    ended = worker.run(function=f"{name}:train", time_limit_s=0.4)
    assert (ended.cause, ended.detail) == ("overran", "still running after its time limit of 0.4 s")


def test_a_segment_whose_time_was_over_before_its_start_runs_no_user_code(worker):
    worker.control = Control(end_by=time.time() - 1)
    ended = worker.run(function=TRAIN)
    assert (ended.cause, worker.steps()) == ("lost", [])


def test_without_a_controller_for_too_long_the_trial_saves_and_releases_the_machine(worker):
    ended = worker.run(function=TRAIN, config={"step_s": 0.01}, until_step=10**6, deadman_s=slowness())
    assert ended.cause == "halted"
    assert worker.saves() == [ended.step]
    assert len(worker.lines(GaveBack)) == 1


def test_with_heartbeats_the_trial_keeps_running(worker):
    deadman_s = 0.6 * slowness()
    worker.start(function=TRAIN, config={"step_s": deadman_s / 30}, until_step=50, deadman_s=deadman_s)
    while worker.process.poll() is None:
        worker.heartbeat.touch()
        time.sleep(0.05)
    assert worker.ended().cause == "reached"


def test_heartbeats_count_whatever_time_the_clock_of_the_controller_shows(worker):
    deadman_s = 0.6 * slowness()
    worker.start(function=TRAIN, config={"step_s": deadman_s / 30}, until_step=50, deadman_s=deadman_s)
    wrong = time.time() - 3600
    while worker.process.poll() is None:
        wrong -= 1
        os.utime(worker.heartbeat, (wrong, wrong))
        time.sleep(0.05)
    assert worker.ended().cause == "reached"


@pytest.mark.parametrize("jump", JUMPS_S)
def test_prepaid_time_does_not_move_with_the_clock_of_the_computer(worker, tmp_path, jump):
    clock = FakeClock(tmp_path / "clock")
    worker.environment = clock.environment()
    begun(worker, function=HUNG)
    clock.jump(jump)
    began = time.monotonic()
    _, ended = ends_in(worker, 0.5)
    assert (ended.cause, ended.detail) == ("lost", "the machine's prepaid time was over")
    assert 0.4 <= time.monotonic() - began < 0.5 + 10 * slowness()


def test_prepaid_time_passes_while_the_computer_sleeps(worker, tmp_path):
    clock = FakeClock(tmp_path / "clock")
    worker.environment = clock.environment()
    begun(worker, function=HUNG)
    clock.sleep(3 * PATIENCE_S)
    worker.process.wait(PATIENCE_S)
    assert worker.ended().detail == "the machine's prepaid time was over"


def test_user_code_does_not_outlive_a_killed_supervisor(worker):
    begun(worker, function=TRAIN, config={"step_s": 0.01}, until_step=10**6)
    worker.process.kill()
    worker.process.wait()
    assert worker.leaves_nothing()
