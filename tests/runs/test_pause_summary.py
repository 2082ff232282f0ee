"""What a pause says: only what was saved counts as saved."""

from __future__ import annotations

from shoestring.kernel import events as e
from shoestring.kernel.types import JobId
from shoestring.runs.pause_summary import HeldAtPause, pause_summary
from shoestring.testing.story import Story, story


def paused_with(*jobs: str) -> tuple[Story, HeldAtPause]:
    run = story()
    for index, job in enumerate(jobs):
        run.rent(f"l{index}")
        run.add(job, until_step=9)
        run.start(f"s{index}", job, f"l{index}")
    for job in jobs:
        if job != "new":
            run.happened(run.report(job, 1, 0.5))
        if job == "saving":
            run.happened(run.save(job, 1))
    held = HeldAtPause.of(run.state)
    for index, job in enumerate(jobs):
        step = run.state.jobs[JobId(job)].step
        run.happened(e.SegmentEnded(at=run.state.now, segment=f"s{index}", step=step, cause="halted"))
    return run, held


def test_a_trial_that_saved_nothing_is_not_called_saved() -> None:
    run, held = paused_with("unsaved")
    assert pause_summary(held, run.state) == (
        "Stopping: 1 machine released, 0 trials saved, 1 trial not saved (1 step lost). Run the same command to resume."
    )


def test_saved_unsaved_and_new_trials_are_counted_apart() -> None:
    run, held = paused_with("saving", "unsaved", "new")
    assert pause_summary(held, run.state).startswith(
        "Stopping: 3 machines released, 1 trial saved, 1 trial not saved (1 step lost), "
        "1 trial without a checkpoint (to start over)."
    )


def test_a_pause_before_anything_was_rented() -> None:
    assert pause_summary(HeldAtPause(), story().state).startswith("Stopping: 0 machines released, 0 trials saved.")
