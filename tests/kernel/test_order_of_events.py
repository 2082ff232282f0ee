"""After a restart events overtake each other, come twice, or are about things long closed. The fold accepts all."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.testing.story import Story, story


def running() -> Story:
    return story(lease="l0", job="j0", running_since=0.0)


def test_lease_ended_before_segment_ended_closes_the_segment() -> None:
    run = running()
    run.happened(run.report("j0", 2, 0.3), run.save("j0", 2), run.report("j0", 3, 0.2))
    run.happened(e.LeaseEnded(at=60.0, lease="l0", cause="revoked", charged_usd=0.01))
    job = run.state.jobs["j0"]
    assert (job.status, job.step, job.revocations) == ("waiting", 2, 1)
    assert not run.state.segments
    run.happened(e.SegmentEnded(at=60.0, segment="s0", step=3, cause="failed"))
    assert (job.status, job.failures) == ("waiting", 0)


def test_a_report_of_a_closed_segment_is_old_news() -> None:
    run = running()
    late = run.report("j0", 5, 0.01)
    run.end("j0", "lost", step=5)
    run.happened(late)
    assert run.state.jobs["j0"].step == 0
    assert run.state.best is None


def test_a_checkpoint_reported_after_its_segment_ended_still_counts() -> None:
    run = running()
    saved = run.save("j0", 4)
    run.end("j0", "lost", step=4)
    run.happened(saved)
    job = run.state.jobs["j0"]
    assert (job.step, job.saved_step) == (4, 4)
    run.happened(saved)
    assert len(job.checkpoints) == 1


def test_checkpoints_reported_in_the_wrong_order_are_kept_in_the_right_one() -> None:
    run = running()
    early, late = run.save("j0", 2), run.save("j0", 4)
    run.happened(late, early)
    assert [ref.step for ref in run.state.jobs["j0"].checkpoints] == [2, 4]


def test_reports_in_the_wrong_order_make_the_same_curve() -> None:
    run = running()
    reports = [run.report("j0", step, 1 / step) for step in (1, 2, 3, 4)]
    run.happened(reports[2], reports[0], reports[3], reports[1])
    job = run.state.jobs["j0"]
    assert list(job.steps) == [1, 2, 3, 4]
    assert list(job.values) == [1.0, 1 / 2, 1 / 3, 1 / 4]
    assert (job.step, job.best) == (4, 1 / 4)


def test_a_step_done_again_replaces_what_was_reported_of_it() -> None:
    run = running()
    run.happened(run.report("j0", 1, 0.1), run.report("j0", 2, 0.2))
    run.happened(run.report("j0", 1, 0.5))
    assert list(run.state.jobs["j0"].values) == [0.5, 0.2]
    assert run.state.jobs["j0"].best == 0.2


def test_time_never_runs_backwards() -> None:
    run = running()
    run.happened(e.TimerFired(at=100.0, name="x"), e.TimerFired(at=50.0, name="y"))
    assert run.view.now == 100.0


@pytest.mark.parametrize(
    "event",
    [
        e.LeaseGranted(at=1.0, lease="l9"),
        e.LeaseDenied(at=1.0, lease="l9", reason="quota"),
        e.LeaseEnded(at=1.0, lease="l9", cause="revoked", charged_usd=5.0),
        e.RevocationNoticed(at=1.0, lease="l9", gone_at=2.0),
        e.SegmentStarted(at=1.0, segment="s9"),
        e.SegmentEnded(at=1.0, segment="s9", step=1, cause="reached"),
        e.TimerFired(at=1.0, name="never set"),
        e.ThoughtReady(at=1.0, name="never requested", answer=None),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_about_unknown_things_change_nothing(event: e.Event) -> None:
    run = running()
    before = (run.view.spent_usd, run.view.reserved_usd, dict(run.state.by_status), list(run.state.leases))
    run.happened(event)
    assert (run.view.spent_usd, run.view.reserved_usd, dict(run.state.by_status), list(run.state.leases)) == before


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**9))
def test_whatever_the_order_the_indexes_stay_true(seed: int) -> None:
    """All events of a small run in any order, some of them twice."""
    rng = random.Random(seed)
    run = running()
    run.add("j1", until_step=3)
    run.rent("l1")
    run.start("s1", "j1", "l1")
    news: list[e.Event] = [
        *(run.report("j0", step, rng.random()) for step in (1, 2, 3)),
        *(run.snapshot("j0", fraction, rng.random()) for fraction in (0.25, 0.5)),
        run.save("j0", 2),
        run.save("j1", 3),
        run.report("j1", 3, rng.random()),
        e.RevocationNoticed(at=20.0, lease="l0", gone_at=140.0),
        e.SegmentEnded(at=21.0, segment="s0", step=3, cause=rng.choice(("halted", "lost", "failed"))),
        e.SegmentEnded(at=22.0, segment="s1", step=3, cause="reached"),
        e.LeaseEnded(at=30.0, lease="l0", cause="revoked", charged_usd=0.1),
        e.LeaseEnded(at=31.0, lease="l1", cause="released", charged_usd=0.2),
    ]
    for event in rng.sample(news, len(news)) + rng.choices(news, k=4):
        run.happened(event)
        assert_true(run)
    assert not run.state.leases
    assert not run.state.segments
    assert run.view.spent_usd == pytest.approx(0.3)
    assert run.state.jobs["j0"].saved_step == 2


def assert_true(run: Story) -> None:
    state = run.state
    assert list(state.waiting) == [job for job in state.waiting if state.jobs[job].status == "waiting"]
    for status in ("paused", "waiting", "running", "finished", "pruned", "failed"):
        assert state.by_status[status] == sum(job.status == status for job in state.jobs.values())
    assert {job.segment for job in state.jobs.values() if job.segment} == set(state.segments)
    for lease in state.leases.values():
        taken = sum(state.segments[segment].slots for segment in lease.segments)
        assert lease.free_slots == lease.slots - taken
        assert (lease.id in state.with_free_slots) == (lease.usable and lease.free_slots > 0)
        assert (lease.id in state.idle) == (lease.usable and not lease.segments)
    for index in (state.with_free_slots, state.idle, state.pending, state.on_notice):
        assert set(index) <= set(state.leases)


def test_a_replayed_journal_gives_the_same_state() -> None:
    run = running()
    run.happened(run.report("j0", 2, 0.3), run.save("j0", 2))
    run.order(d.WakeAt(name="x", at=99.0, why="x"))
    run.end("j0", "halted", step=2)
    left_out = {"feed", "decided"}
    ours = {name: repr(value) for name, value in vars(run.state).items() if name not in left_out}
    theirs = {name: repr(value) for name, value in vars(run.replayed()).items() if name not in left_out}
    assert ours == theirs
