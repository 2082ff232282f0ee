"""The life cycle of jobs: what each event and decision changes, and how a loss falls back to the last checkpoint."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from shoestring.errors import IllegalDecision, PolicyError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Settled
from shoestring.testing.story import SPEC, Story, checkpoint, story


def running(**fields) -> Story:
    """j0 runs on l0 up to step 9."""
    return story(spec=replace(SPEC, **fields), lease="l0", job="j0", running_since=0.0)


def test_a_job_is_first_on_the_books_then_waits_then_runs() -> None:
    run = story(lease="l0")
    run.add("j0")
    assert run.state.jobs["j0"].status == "paused"
    run.order(d.RunJob(job="j0", until_step=3, why="the story"))
    assert run.state.jobs["j0"].status == "waiting"
    assert list(run.view.waiting) == ["j0"]
    run.start("s0", "j0", "l0")
    assert run.state.jobs["j0"].status == "running"
    assert not run.view.waiting
    assert {s: run.view.count(s) for s in ("paused", "waiting", "running")} == {"paused": 0, "waiting": 0, "running": 1}


def test_a_job_that_reached_its_target_step_is_paused() -> None:
    run = story(lease="l0")
    run.add("j0", until_step=3)
    run.start("s0", "j0", "l0")
    run.happened(run.report("j0", 3, 0.4))
    run.end("j0")
    assert run.state.jobs["j0"].status == "paused"
    assert run.view.settled == [Settled("j0", "paused", 3, 3, 0.4)]


def test_a_job_that_did_all_its_steps_is_finished_and_so_is_one_whose_code_completed() -> None:
    run = running()
    run.end("j0", "reached")
    assert run.state.jobs["j0"].status == "finished"
    run = running()
    run.end("j0", "completed", step=4)
    assert run.state.jobs["j0"].status == "finished"
    assert run.state.jobs["j0"].step == 4


def test_reports_make_the_curve_and_the_best() -> None:
    run = running()
    for step, value in ((1, 0.5), (2, math.nan), (3, 0.2), (4, 0.3)):
        run.happened(run.report("j0", step, value))
    job = run.state.jobs["j0"]
    assert list(job.steps) == [1, 2, 3, 4]
    assert job.step == 4
    assert job.best == 0.2
    assert run.state.best == "j0"


def test_bigger_is_better_when_maximizing() -> None:
    run = running(direction="maximize")
    for step, value in ((1, 0.5), (2, 0.2)):
        run.happened(run.report("j0", step, value))
    assert run.state.jobs["j0"].best == 0.5


def test_a_report_without_the_metric_counts_as_progress_only() -> None:
    run = running()
    report = run.report("j0", 2, 0.1)
    run.happened(replace(report, metrics={"speed": 3.0}))
    assert run.state.jobs["j0"].step == 2
    assert run.state.jobs["j0"].latest == {"speed": 3.0}
    assert not run.state.jobs["j0"].values
    assert run.state.best is None


def test_lost_work_falls_back_to_the_checkpoint_and_the_same_job_waits_again() -> None:
    run = running()
    run.happened(run.report("j0", 1, 0.1), run.report("j0", 2, 0.5), run.save("j0", 2))
    run.happened(replace(run.report("j0", 5, 0.05), at=100.0))
    run.happened(e.SegmentEnded(at=130.0, segment="s0", step=5, cause="lost"))
    job = run.state.jobs["j0"]
    assert (job.status, job.step, job.lost_steps, run.state.lost_steps) == ("waiting", 2, 3, 3)
    assert list(job.values) == [0.1, 0.5]  # reports of lost steps are removed
    assert job.best == 0.1
    assert run.state.lost_s == 130.0  # saved at 0, running since 0
    assert run.view.settled == []


def test_the_best_of_the_run_is_found_again_when_its_work_is_lost() -> None:
    run = running(max_machines=2)
    run.add("j1", until_step=9)
    run.rent("l1")
    run.start("s1", "j1", "l1")
    run.happened(run.report("j1", 1, 0.3), run.report("j0", 1, 0.1))
    assert run.state.best == "j0"
    run.end("j0", "lost", step=1)
    assert run.state.best == "j1"


def test_without_a_checkpoint_a_lost_job_starts_over() -> None:
    run = running()
    run.happened(run.report("j0", 4, 0.1))
    run.end("j0", "lost", step=4)
    assert run.state.jobs["j0"].step == 0
    assert run.state.jobs["j0"].checkpoint is None


def test_a_halted_job_resumes_from_its_checkpoint() -> None:
    run = running()
    run.happened(run.report("j0", 4, 0.1), run.save("j0", 4))
    run.end("j0", "halted", step=4)
    job = run.state.jobs["j0"]
    assert (job.status, job.step, job.lost_steps, job.saved_step) == ("waiting", 4, 0, 4)


@pytest.mark.parametrize("cause", ["failed", "overran"])
def test_failures_have_a_small_budget_of_their_own(cause) -> None:
    run = running(max_failures=1)
    run.end("j0", cause, step=0)
    assert run.state.jobs["j0"].status == "waiting"
    run.start("s1", "j0", "l0")
    run.end("j0", cause, step=0)
    assert run.state.jobs["j0"].status == "failed"
    assert run.view.settled[-1].status == "failed"


def test_revocations_are_no_failures() -> None:
    run = running(max_failures=0)
    run.happened(e.RevocationNoticed(at=5.0, lease="l0", gone_at=125.0))
    run.end("j0", "halted", step=0)
    job = run.state.jobs["j0"]
    assert (job.status, job.failures, job.revocations) == ("waiting", 0, 1)


def test_the_last_error_is_kept() -> None:
    run = running()
    run.happened(e.SegmentEnded(at=1.0, segment="s0", step=0, cause="failed", detail="ZeroDivisionError"))
    assert run.state.jobs["j0"].detail == "ZeroDivisionError"


def test_a_job_pruned_while_it_runs_stays_pruned_however_its_segment_ends() -> None:
    run = running()
    run.order(d.DropJob(job="j0", why="the story"))
    assert list(run.view.draining) == ["s0"]
    assert run.view.settled == [Settled("j0", "pruned", 0, 9, None)]
    run.order(d.HaltSegment(segment="s0", grace_s=5.0, why="the story"))
    assert not run.view.draining
    run.end("j0", "reached")
    assert run.state.jobs["j0"].status == "pruned"
    assert len(run.view.settled) == 1


def test_a_job_paused_while_it_runs_can_be_wanted_again_before_it_has_left() -> None:
    run = running()
    run.order(d.PauseJob(job="j0", why="the story"))
    assert list(run.view.draining) == ["s0"]
    run.order(d.RunJob(job="j0", until_step=9, why="the story"))
    assert not run.view.draining
    assert run.state.jobs["j0"].status == "running"


def test_a_paused_job_stays_paused_when_it_has_left() -> None:
    run = running()
    run.order(d.PauseJob(job="j0", why="the story"))
    run.end("j0", "halted", step=0)
    assert run.state.jobs["j0"].status == "paused"
    assert not run.view.waiting


def test_a_job_whose_target_step_rises_while_it_runs_waits_for_the_remaining_steps() -> None:
    run = story(lease="l0")
    run.add("j0", until_step=3)
    run.start("s0", "j0", "l0")
    run.order(d.RunJob(job="j0", until_step=9, why="the story"))
    run.happened(e.SegmentEnded(at=1.0, segment="s0", step=3, cause="reached"))
    assert run.state.jobs["j0"].status == "waiting"


def test_tags_are_added_to_not_replaced() -> None:
    run = story()
    run.add("j0", rung=0, bracket=2)
    run.order(d.TagJob(job="j0", tags={"rung": 1}, why="the story"))
    assert run.state.jobs["j0"].tags == {"rung": 1, "bracket": 2}


def test_a_checkpoint_that_turned_out_damaged_gives_way_to_the_one_before() -> None:
    run = running()
    run.happened(run.save("j0", 2), run.save("j0", 4))
    broken = run.state.jobs["j0"].checkpoint
    run.happened(e.CheckpointLost(at=9.0, job="j0", ref=broken, detail="does not match its hash"))
    assert run.state.jobs["j0"].checkpoint == checkpoint("j0", 2, name="j0/s0-2")
    assert run.state.jobs["j0"].detail == "does not match its hash"


def test_a_deleted_checkpoint_is_forgotten() -> None:
    run = running()
    run.happened(run.save("j0", 2))
    run.order(d.DropCheckpoint(ref=run.state.jobs["j0"].checkpoint, why="the story"))
    assert run.state.jobs["j0"].checkpoints == []


NONSENSE = {
    "an unknown job": d.RunJob(job="j9", until_step=1, why="x"),
    "a job twice": d.AddJob(job="j0", config={}, why="x"),
    "a step beyond the last": d.RunJob(job="j0", until_step=10, why="x"),
    "no step at all": d.RunJob(job="j0", until_step=0, why="x"),
    "no slots": d.RunJob(job="j0", until_step=1, slots=0, why="x"),
    "a job that runs": d.StartSegment(segment="s1", job="j0", leases=("l0",), config={}, until_step=9, why="x"),
    "a segment out of turn": d.StartSegment(segment="s7", job="j0", leases=("l0",), config={}, until_step=9, why="x"),
    "a segment that is not there": d.HaltSegment(segment="s9", grace_s=1.0, why="x"),
    "an unknown job to prune": d.DropJob(job="j9", why="x"),
    "tags for an unknown job": d.TagJob(job="j9", tags={}, why="x"),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_illegal(what: str) -> None:
    with pytest.raises(IllegalDecision):
        running().order(NONSENSE[what])


def test_what_is_over_is_over() -> None:
    run = running()
    run.end("j0")
    for order in (
        d.DropJob(job="j0", why="x"),
        d.PauseJob(job="j0", why="x"),
        d.RunJob(job="j0", until_step=9, why="x"),
    ):
        with pytest.raises(PolicyError, match="finished"):
            run.order(order)


def test_unsaved_work_of_a_pruned_job_is_not_lost_work() -> None:
    run = running()
    run.happened(run.report("j0", 3, 0.4))
    run.order(d.DropJob(job="j0", why="a test"))
    run.end("j0", "lost", step=3)
    assert run.state.jobs["j0"].step == 0
    assert run.state.lost_steps == 0
