"""A worker ends when it has to, with nobody to tell it: prepaid time, taken back, time limit, dead controller."""

import time

import shoestring.testing.user_code as user_code
from shoestring.worker.outbox import Ended, GaveBack, Reported
from shoestring.worker.task import Control

TRAIN, HUNG = f"{user_code.__file__}:train", f"{user_code.__file__}:hung"


def test_a_trial_saves_and_leaves_just_before_its_prepaid_time_ends(hand):
    hand.control = Control(end_by=time.time() + 2.0, lead_s=0.5)
    ended = hand.run(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    assert ended.cause == "halted"
    assert hand.saves() == [ended.step]
    assert ended.wall < hand.control.end_by


def test_a_hung_trial_is_killed_when_its_prepaid_time_ends_and_its_children_with_it(hand):
    hand.control = Control(end_by=time.time() + 1.5, lead_s=0.2)
    ended = hand.run(function=HUNG)
    assert (ended.cause, ended.step, ended.detail) == ("lost", 1, "the machine's prepaid time was over")
    assert 0 <= ended.wall - hand.control.end_by < 0.5
    assert hand.leaves_nothing()


def test_prepaid_time_can_be_made_longer(hand):
    hand.control = Control(end_by=time.time() + 1.5, lead_s=0.1)
    hand.start(function=TRAIN, config={"step_s": 0.02}, until_step=100)
    hand.wait_for(Reported)
    hand.control = Control(end_by=time.time() + 60)
    hand.tell()
    assert hand.wait_for(Ended).cause == "reached"


def test_a_machine_is_warned_and_taken_back_on_time_without_a_controller(hand):
    now = time.time()
    hand.control = Control(end_by=now + 60, notice_at=now + 1.5, gone_at=now + 2.5)
    ended = hand.run(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    assert ended.cause == "halted"
    assert now + 1.5 <= ended.wall < now + 2.5


def test_a_trial_that_ignores_the_notice_is_lost(hand):
    now = time.time()
    hand.control = Control(end_by=now + 60, notice_at=now + 0.4, gone_at=now + 0.6)
    ended = hand.run(function=HUNG)
    assert (ended.cause, ended.detail) == ("lost", "the machine was taken back")


def test_a_trial_over_its_time_limit_overran(hand):
    ended = hand.run(function=HUNG, time_limit_s=0.4)
    assert (ended.cause, ended.detail) == ("overran", "still running after its time limit of 0.4 s")


def test_a_segment_whose_time_was_over_before_it_began_runs_no_user_code(hand):
    hand.control = Control(end_by=time.time() - 1)
    ended = hand.run(function=TRAIN)
    assert (ended.cause, hand.steps()) == ("lost", [])


def test_with_the_controller_dead_for_too_long_the_trial_saves_and_gives_the_machine_back(hand):
    ended = hand.run(function=TRAIN, config={"step_s": 0.01}, until_step=10_000, deadman_s=1.0)
    assert ended.cause == "halted"
    assert hand.saves() == [ended.step]
    assert len(hand.lines(GaveBack)) == 1


def test_a_beating_heart_keeps_the_trial_going(hand):
    hand.start(function=TRAIN, config={"step_s": 0.02}, until_step=50, deadman_s=0.6)
    while hand.process.poll() is None:
        hand.heartbeat.touch()
        time.sleep(0.05)
    assert hand.ended().cause == "reached"


def test_user_code_whose_supervisor_is_killed_does_not_live_on(hand):
    hand.start(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    hand.wait_for(Reported)
    hand.process.kill()
    hand.process.wait()
    assert hand.leaves_nothing()
