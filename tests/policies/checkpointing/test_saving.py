"""When work is saved, and which checkpoints are deleted."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.checkpointing.on_notice import OnNotice
from shoestring.policies.checkpointing.periodic import Periodic
from shoestring.policies.checkpointing.retention import Retention
from shoestring.policies.housekeeping.closing import Closing
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.testing.story import SPEC, Story, story

NOTICE = e.RevocationNoticed(at=50.0, lease="l0", gone_at=170.0)


@pytest.mark.parametrize("policy", [OnNotice(), Periodic()])
def test_a_job_hit_by_a_notice_is_saved_once(policy) -> None:
    run = story(policy, lease="l0", job="j0", running_since=0.0)
    first = run.tell(NOTICE)
    again = run.tell(replace(NOTICE, at=51.0))
    assert first == [d.HaltSegment(segment="s0", grace_s=120.0, why="l0 is preempted in 2m: save and stop")]
    assert again == []


def test_a_notice_that_arrives_after_the_preemption_leaves_no_time() -> None:
    run = story(OnNotice(), lease="l0", job="j0", running_since=0.0)
    (halt,) = run.tell(e.RevocationNoticed(at=50.0, lease="l0", gone_at=40.0))
    assert halt.grace_s == 0.0


def test_a_notice_for_an_empty_or_unknown_machine_needs_no_saving() -> None:
    run = story(OnNotice(), lease="l0")
    assert run.tell(NOTICE) == []
    assert run.tell(replace(NOTICE, lease="l7")) == []


def test_every_segment_gets_a_save_interval() -> None:
    run = story(Cheapest(), Periodic(every_s=300.0), lease="l0", job="j0")
    started, planned = run.tell(e.TimerFired(at=1.0, name="tick"))
    assert isinstance(started, d.StartSegment)
    assert planned == d.PlanSaves(
        segment="s0", every_s=300.0, why="saves every 5m: a preemption loses no more than that"
    )


def saved(run: Story, *steps: int) -> list[list[d.Decision]]:
    return [run.tell(run.save("j0", step)) for step in steps]


def deleted(decisions: list[d.Decision]) -> list[int]:
    return [x.ref.step for x in decisions if isinstance(x, d.DropCheckpoint)]


def test_the_newest_two_are_kept() -> None:
    run = story(Retention(), lease="l0", job="j0", running_since=0.0)
    assert [deleted(decided) for decided in saved(run, 1, 2, 3, 4)] == [[], [], [1], [2]]
    assert [ref.step for ref in run.state.jobs["j0"].checkpoints] == [3, 4]


def test_more_are_kept_on_request() -> None:
    run = story(Retention(), spec=replace(SPEC, keep_checkpoints=3), lease="l0", job="j0", running_since=0.0)
    assert [deleted(decided) for decided in saved(run, 1, 2, 3, 4)] == [[], [], [], [1]]


class Prunes:
    wants = frozenset({e.TimerFired})

    def decide(self, state, event):  # noqa: ARG002
        yield d.DropJob(job="j0", why="the story")


def test_a_pruned_job_keeps_nothing() -> None:
    run = story(Prunes(), Retention(), lease="l0", job="j0", running_since=0.0)
    saved(run, 1, 2)
    assert deleted(run.tell(e.TimerFired(at=9.0, name="tick"))) == [1, 2]
    (last,) = saved(run, 3)  # it was saving when it was pruned
    assert last == [d.DropCheckpoint(ref=ANY, why="its trial was pruned while it was saving")]
    assert run.state.jobs["j0"].checkpoints == []


def test_the_best_so_far_keeps_its_checkpoint_even_when_pruned() -> None:
    run = story(Prunes(), Retention(), lease="l0", job="j0", running_since=0.0)
    run.happened(run.report("j0", 2, 0.1))
    saved(run, 1, 2)
    assert deleted(run.tell(e.TimerFired(at=9.0, name="tick"))) == []


@pytest.mark.parametrize(("work_left", "kept_of_j0"), [(False, []), (True, [2])])
def test_when_the_run_is_over_what_may_be_resumed_keeps_its_last_checkpoint(work_left: bool, kept_of_j0: list) -> None:
    """Finished jobs and the best always; the others if a larger budget or a later deadline could resume the run."""
    run = story(Closing(), Retention(), lease="l0", job="j0", running_since=0.0)
    run.rent("l1")
    for name, segment in (("j1", "s1"), ("j2", "s2")):
        run.add(name, until_step=9)
        run.start(segment, name, "l1")
        for step in (1, 9) if name == "j1" else (1, 2):
            run.happened(run.save(name, step))
        if name == "j2":
            run.happened(run.report(name, 2, 0.01))
        run.happened(e.SegmentEnded(at=5.0, segment=segment, step=9, cause="reached" if name == "j1" else "halted"))
    run.happened(run.save("j0", 1), run.save("j0", 2))
    run.happened(e.SegmentEnded(at=6.0, segment="s0", step=2, cause="halted"))
    run.happened(e.LeaseEnded(at=7.0, lease="l0", cause="released", charged_usd=0.0))
    if not work_left:
        run.order(d.PauseJob(job="j0", why="the story"), d.PauseJob(job="j2", why="the story"))
    run.order(d.WindDown(reason="completed", why="the story"))
    run.tell(e.LeaseEnded(at=8.0, lease="l1", cause="released", charged_usd=0.0))
    assert run.state.concluded
    kept = {job.id: [ref.step for ref in job.checkpoints] for job in run.state.jobs.values()}
    assert kept == {"j0": kept_of_j0, "j1": [9], "j2": [2]}
