"""Simulated training code: start, step, save, halt, fail, hang, and resume from a checkpoint."""

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from tests.world.scenes import (
    RUNNING_AT,
    SPOT,
    Scene,
    checkpoint,
    dies_at_age,
    ended,
    gone,
    listing,
    market,
    reported,
    saved,
    started,
    without_bill,
)


def at_75(scene: Scene) -> None:
    """Run to the middle of the second step."""
    scene.order(d.WakeAt(name="middle", at=75.0, why="a test"))
    assert scene.until(e.TimerFired)[-2:] == [reported(70.0, 1), e.TimerFired(at=75.0, name="middle")]


def test_code_runs_step_by_step_and_saves_at_its_target_step():
    scene = Scene()
    scene.train(until_step=3)
    assert scene.until(e.SegmentEnded) == [
        started(RUNNING_AT),
        reported(70.0, 1),
        reported(80.0, 2),
        reported(90.0, 3),
        saved(96.0, 3),
        ended(96.0, 3, "reached"),
    ]


def test_code_that_resumes_from_a_checkpoint_restores_it_first_and_repeats_nothing():
    scene = Scene()
    scene.train(until_step=4, resume_from=checkpoint(2))
    assert scene.until(e.CheckpointSaved) == [
        started(63.5),
        reported(73.5, 3),
        reported(83.5, 4),
        saved(89.5, 4),
    ]


def test_code_that_never_saves_ends_without_a_checkpoint():
    scene = Scene(checkpoint_gb=None)
    scene.train(until_step=1)
    scene.plan_saves(1.0)
    assert scene.until(e.SegmentEnded) == [started(RUNNING_AT), reported(70.0, 1), ended(70.0, 1, "reached")]


# -- saving ------------------------------------------------------------------------------------------------------------
def test_the_worker_saves_periodically_counted_from_its_last_save():
    scene = Scene()
    scene.train(until_step=5)
    scene.plan_saves(15.0)
    assert scene.until(e.SegmentEnded) == [
        started(RUNNING_AT),
        reported(70.0, 1),
        reported(80.0, 2),  # due since 75
        saved(86.0, 2),
        reported(96.0, 3),
        reported(106.0, 4),  # due since 101
        saved(112.0, 4),
        reported(122.0, 5),
        saved(128.0, 5),
        ended(128.0, 5, "reached"),
    ]


def test_a_new_plan_replaces_the_old_one():
    scene = Scene()
    scene.train(until_step=5)
    scene.plan_saves(1.0)
    scene.next()
    scene.plan_saves(1000.0)
    assert [x.step for x in scene.until(e.SegmentEnded) if isinstance(x, e.CheckpointSaved)] == [5]


def test_a_requested_save_comes_once_at_the_next_step_boundary():
    scene = Scene()
    scene.train(until_step=4)
    at_75(scene)
    scene.save()
    assert scene.until(e.SegmentEnded) == [
        reported(80.0, 2),
        saved(86.0, 2),
        reported(96.0, 3),
        reported(106.0, 4),
        saved(112.0, 4),
        ended(112.0, 4, "reached"),
    ]


def test_a_requested_save_with_nothing_new_is_dropped():
    scene = Scene()
    scene.train(until_step=2)
    scene.save()
    assert scene.until(e.SegmentEnded)[:4] == [
        started(RUNNING_AT),
        reported(70.0, 1),
        reported(80.0, 2),
        saved(86.0, 2),
    ]


# -- stopping ----------------------------------------------------------------------------------------------------------
def test_halted_code_finishes_its_step_saves_and_stops():
    scene = Scene()
    scene.train(until_step=9)
    at_75(scene)
    scene.halt(grace_s=60.0)
    assert scene.until(e.SegmentEnded) == [reported(80.0, 2), saved(86.0, 2), ended(86.0, 2, "halted")]


def test_code_halted_before_it_runs_stops_at_once_without_a_save():
    scene = Scene()
    scene.train(resume_from=checkpoint(2))
    scene.halt(grace_s=60.0)
    assert scene.until(e.SegmentEnded) == [started(63.5), ended(63.5, 2, "halted")]


def test_code_that_does_not_stop_in_its_grace_period_is_killed_in_the_middle_of_a_step():
    scene = Scene()
    scene.train(until_step=9)
    at_75(scene)
    scene.halt(grace_s=3.0)
    assert scene.next() == ended(78.0, 1, "lost")


def test_a_grace_period_that_ends_during_the_save_saves_nothing():
    scene = Scene()
    scene.train(until_step=9)
    at_75(scene)
    scene.halt(grace_s=8.0)
    assert scene.until(e.SegmentEnded) == [reported(80.0, 2), ended(83.0, 2, "lost")]


def test_code_that_stopped_in_time_is_not_killed_as_well():
    scene = Scene()
    scene.train(until_step=9, end_by=200.0)
    at_75(scene)
    scene.halt(grace_s=60.0)
    scene.until(e.SegmentEnded)
    assert without_bill(scene.next()) == gone(200.0, "expired")


def test_a_worker_on_an_extended_lease_keeps_running():
    scene = Scene()
    scene.train(until_step=99, end_by=145.0)
    scene.order(d.ExtendLease(lease="l0", end_by=245.0, why="a test"))
    assert scene.until(e.SegmentEnded)[-2:] == [reported(240.0, 18), ended(245.0, 18, "lost")]


# -- notices -----------------------------------------------------------------------------------------------------------
def a_notice_at_85_for_145(**of_workload) -> Scene:
    scene = Scene(market(dies_at_age(105.0), listings=[listing(SPOT, notice_s=60.0)]), **of_workload)
    scene.train(until_step=99)
    scene.first(e.RevocationNoticed)
    return scene


def test_a_save_that_fits_into_the_notice_is_made_without_an_order():
    scene = a_notice_at_85_for_145()
    assert scene.until(e.SegmentEnded) == [reported(90.0, 3), saved(96.0, 3), ended(96.0, 3, "halted")]
    assert without_bill(scene.next()) == gone(145.0, "revoked")


def test_a_save_that_does_not_fit_into_the_notice_is_lost_with_the_machine():
    scene = a_notice_at_85_for_145(checkpoint_gb=10.0)  # 1 + 10 / 0.1 = 101 s from step 3 on, at 90
    assert scene.until(e.SegmentEnded) == [reported(90.0, 3), ended(145.0, 3, "lost")]


def test_a_step_longer_than_the_notice_leaves_no_boundary_to_save_at():
    scene = a_notice_at_85_for_145(seconds_per_step=lambda *_: 100.0)
    assert scene.next() == ended(145.0, 0, "lost")


def test_a_save_under_way_at_the_notice_finishes_and_needs_no_second_one():
    scene = Scene(market(dies_at_age(105.0), listings=[listing(SPOT, notice_s=72.0)]))
    scene.train(until_step=99)
    scene.plan_saves(10.0)
    assert scene.until(e.SegmentEnded) == [
        started(RUNNING_AT),
        reported(70.0, 1),
        e.RevocationNoticed(at=73.0, lease="l0", gone_at=145.0),
        saved(76.0, 1),
        ended(76.0, 1, "halted"),
    ]


# -- trouble -----------------------------------------------------------------------------------------------------------
def after_step(number: int, what: str):
    return lambda _config, _segment, step: what if step == number else None


def test_code_that_fails_ends_at_the_step_it_failed_after():
    scene = Scene(trouble=after_step(2, "fail"))
    scene.train()
    assert scene.until(e.SegmentEnded) == [
        started(RUNNING_AT),
        reported(70.0, 1),
        reported(80.0, 2),
        ended(80.0, 2, "failed"),
    ]


def test_code_that_hangs_is_ended_at_its_time_limit():
    scene = Scene(trouble=after_step(1, "hang"))
    scene.train(time_limit_s=500.0)
    assert scene.until(e.SegmentEnded) == [started(RUNNING_AT), reported(70.0, 1), ended(540.0, 1, "overran")]


def test_code_that_hangs_does_not_halt_and_is_killed():
    scene = Scene(trouble=after_step(1, "hang"))
    scene.train()
    at_75(scene)
    scene.halt(grace_s=60.0)
    assert scene.next() == ended(135.0, 1, "lost")


def test_slow_code_is_ended_at_its_time_limit_too():
    scene = Scene()
    scene.train(until_step=9, time_limit_s=35.0)
    assert scene.until(e.SegmentEnded) == [started(RUNNING_AT), reported(70.0, 1), ended(75.0, 1, "overran")]


def test_a_time_limit_that_is_not_reached_has_no_effect():
    scene = Scene()
    scene.train(time_limit_s=100.0, end_by=500.0)
    assert scene.until(e.SegmentEnded)[-1] == ended(96.0, 3, "reached")
    assert without_bill(scene.next()) == gone(500.0, "expired")
