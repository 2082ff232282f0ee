"""BackendSuite: what every place that runs user code must do, to be run on your own.

class TestMine(BackendSuite):
    def make(self, rig):
        return MyBackend(rig.run_dir, rig.clock, ...)

Times are market seconds; in these tests a hundred of them pass in a real one.
"""

from __future__ import annotations

import time
from pathlib import Path

from shoestring.kernel.decisions import ExtendLease, PlanSaves, RequestLease
from shoestring.kernel.events import (
    CheckpointSaved,
    JobReported,
    LeaseDenied,
    LeaseEnded,
    LeaseGranted,
    RevocationNoticed,
    SegmentEnded,
    SegmentStarted,
    SnapshotReported,
)
from shoestring.kernel.types import LeaseId
from shoestring.testing.backend_rig import L0, L1, OFFER, S0, S1, START, ObservedEvents
from shoestring.testing.gang_laws import GangLaws


class BackendSuite(GangLaws):
    """Subclass it, give `make`, and pytest does the rest."""

    # -- machines ------------------------------------------------------------------------------------------------------
    def test_a_lease_is_granted_used_and_billed(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent()
        assert list(story.backend.inventory()) == [L0]
        story.backend.release(L0)
        ended = story.wait_for(LeaseEnded)
        granted = story.told(LeaseGranted)[0]
        assert ended.cause == "released"
        assert abs(ended.charged_usd - (ended.at - granted.at)) < 1e-6
        self.over(story)

    def test_asking_and_releasing_twice_is_the_same_as_once(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent()
        end_by = story.rig.clock.now() + 60
        story.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=end_by, why="asked again"))
        story.backend.release(L0)
        story.wait_for(LeaseEnded)
        story.backend.release(L0)
        story.backend.release(LeaseId("never-heard-of"))
        story.look()
        assert [type(event) for event in story.events] == [LeaseGranted, LeaseEnded]
        self.over(story)

    def test_a_denial_is_told_with_its_reason(self, tmp_path: Path) -> None:
        story = self.story(tmp_path, denied={L0: "no_capacity"})
        story.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
        assert story.wait_for(LeaseDenied).reason == "no_capacity"
        self.over(story)

    def test_prepaid_time_ends_unless_it_is_extended(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent(L0, for_s=20)
        story.rent(L1, for_s=20)
        later = story.rig.clock.now() + 500
        story.backend.extend(ExtendLease(lease=L1, end_by=later, why="test"))
        ended = story.wait_for(LeaseEnded)
        assert (ended.lease, ended.cause) == (L0, "expired")
        assert ended.charged_usd <= 20
        assert list(story.backend.inventory()) == [L1]
        self.over(story)

    # -- user code -----------------------------------------------------------------------------------------------------
    def test_a_job_runs_to_its_goal_and_saves_there(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent()
        story.start(until_step=3)
        ended = story.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("reached", 3)
        assert story.steps() == [1, 2, 3]
        assert [saved.step for saved in story.told(CheckpointSaved)] == [3]
        kinds = [type(event) for event in story.events]
        assert kinds.index(SegmentStarted) < kinds.index(JobReported) < kinds.index(CheckpointSaved)
        self.over(story)

    def test_a_job_goes_on_from_its_checkpoint(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent()
        story.start(S0, until_step=2)
        story.wait_for(SegmentEnded)
        story.start(S1, until_step=5, resume_from=story.told(CheckpointSaved)[0].ref)
        ended = story.wait_for(SegmentEnded, lambda event: event.segment == S1)
        assert (ended.cause, ended.step, story.steps(S1)) == ("reached", 5, [3, 4, 5])
        assert story.told(JobReported)[-1].metrics["trained"] == 5
        self.over(story)

    def test_a_job_trains_on_its_part_of_the_data_and_after_a_restore_on_the_same(self, tmp_path: Path) -> None:
        story = self.story(tmp_path, "sampled")
        story.rent()
        story.start(S0, until_step=1, fraction=0.5, fractions=(0.1, 0.2), seed=7)
        story.wait_for(SegmentEnded)
        ref = story.told(CheckpointSaved)[0].ref
        story.start(S1, until_step=2, resume_from=ref, fraction=0.5, fractions=(0.2,), seed=7)
        story.end_of(S1)
        (first,), (again,) = story.metrics(S0), story.metrics(S1)
        assert first == again, "other samples after the restore"
        told = [(event.segment, event.fraction) for event in story.told(SnapshotReported)]
        assert told == [(S0, 0.1), (S0, 0.2), (S1, 0.2)]
        smallest, smaller, smaller_again = (event.metrics["loss"] for event in story.told(SnapshotReported))
        assert smallest < smaller == smaller_again < first["loss"], "the parts are not nested"
        self.over(story)

    def test_starting_twice_is_the_same_as_once(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent()
        order = story.start(until_step=2)
        story.backend.start(order)
        story.wait_for(SegmentEnded)
        story.backend.start(order)
        story.look()
        assert story.steps() == [1, 2]
        assert len(story.told(SegmentEnded)) == 1
        self.over(story)

    def test_an_error_is_told_in_a_line(self, tmp_path: Path) -> None:
        story = self.story(tmp_path, "broken")
        story.rent()
        story.start()
        ended = story.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("failed", 2)
        assert ended.detail.startswith("ValueError: the loss went through the roof (user_code.py:")
        self.over(story)

    def test_code_that_never_reports_the_metric_fails_with_what_it_reported(self, tmp_path: Path) -> None:
        story = self.story(tmp_path, "silent")
        story.rent()
        story.start()
        ended = story.wait_for(SegmentEnded)
        assert (ended.cause, ended.detail) == ("failed", "never reported 'loss'; reported: accuracy")
        self.over(story)

    def test_a_segment_on_a_machine_that_is_gone_is_lost(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent()
        story.backend.release(L0)
        story.start()
        assert story.wait_for(SegmentEnded).cause == "lost"
        assert story.told(SegmentStarted) == []
        self.over(story)

    # -- revocation ----------------------------------------------------------------------------------------------------
    def test_on_a_notice_the_job_saves_and_leaves(self, tmp_path: Path) -> None:
        story = self.story(tmp_path, revoked={L0: (150.0, 250.0)})
        story.rent()
        story.start(until_step=10_000, step_s=0.01)
        ended = story.wait_for(SegmentEnded)
        gone = story.wait_for(LeaseEnded)
        noticed = story.told(RevocationNoticed)[0]
        assert ended.cause == "halted"
        assert story.told(CheckpointSaved)[-1].step == ended.step == story.steps()[-1]
        assert noticed.at <= ended.at <= gone.at
        assert (gone.cause, gone.at) == ("revoked", noticed.gone_at)
        self.over(story)

    def test_a_machine_taken_without_notice_takes_its_job_with_it(self, tmp_path: Path) -> None:
        story = self.story(tmp_path, revoked={L0: (120.0, 120.0)})
        story.rent()
        story.start(until_step=10_000, step_s=0.01)
        gone = story.wait_for(LeaseEnded)
        ended = story.told(SegmentEnded)[0]
        assert (ended.cause, gone.cause) == ("lost", "revoked")
        assert story.told(RevocationNoticed) == []
        assert story.told(CheckpointSaved) == []
        assert ended.at <= gone.at
        self.over(story)

    def test_just_before_prepaid_time_ends_the_job_saves_and_leaves(self, tmp_path: Path) -> None:
        story = self.story(tmp_path)
        story.rent(for_s=220)
        story.start(until_step=10_000, step_s=0.01)
        ended = story.wait_for(SegmentEnded)
        assert ended.cause == "halted"
        assert story.told(CheckpointSaved)[-1].step == ended.step
        assert story.wait_for(LeaseEnded).cause == "expired"
        self.over(story)

    def test_a_hung_job_is_ended_at_its_time_limit(self, tmp_path: Path) -> None:
        self.needs_company()
        story = self.story(tmp_path, "hung")
        story.rent()
        story.start(time_limit_s=100)
        ended = story.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("overran", 1)
        assert list(story.backend.inventory()) == [L0]
        self.over(story)

    # -- orders to a running job ---------------------------------------------------------------------------------------
    def test_a_halted_job_saves_and_stops(self, tmp_path: Path) -> None:
        self.needs_company()
        story = self.story(tmp_path)
        story.rent()
        story.start(until_step=10_000, step_s=0.01)
        story.wait_for(JobReported)
        story.backend.signal(S0, "halt", 1000.0)
        ended = story.wait_for(SegmentEnded)
        assert ended.cause == "halted"
        assert story.told(CheckpointSaved)[-1].step == ended.step
        self.over(story)

    def test_a_job_that_does_not_halt_is_killed(self, tmp_path: Path) -> None:
        self.needs_company()
        story = self.story(tmp_path, "hung")
        story.rent()
        story.start(until_step=10)
        story.wait_for(JobReported)
        story.backend.signal(S0, "halt", 1.0)
        assert story.wait_for(SegmentEnded).cause == "lost"
        self.over(story)

    def test_saves_come_when_asked_and_as_planned(self, tmp_path: Path) -> None:
        self.needs_company()
        story = self.story(tmp_path)
        story.rent()
        story.start(until_step=10_000, step_s=0.005)
        story.wait_for(JobReported)
        story.backend.signal(S0, "save", 0.0)
        first = story.wait_for(CheckpointSaved)
        story.backend.plan_saves(PlanSaves(segment=S0, every_s=5.0, why="test"))
        story.wait_for(CheckpointSaved, lambda saved: saved.step > first.step)
        assert story.told(SegmentEnded) == []
        self.over(story)

    def test_a_released_machine_takes_its_job_with_it(self, tmp_path: Path) -> None:
        self.needs_company()
        story = self.story(tmp_path, "hung")
        story.rent()
        story.start(until_step=10)
        story.wait_for(JobReported)
        story.backend.release(L0)
        assert list(self.running(story.rig)) == []
        story.wait_for(LeaseEnded)
        assert story.told(SegmentEnded)[0].cause == "lost"
        self.over(story)

    # -- without a controller ------------------------------------------------------------------------------------------
    def test_another_instance_adopts_what_runs(self, tmp_path: Path) -> None:
        self.needs_company()
        story = self.story(tmp_path)
        story.rent()
        order = story.start(until_step=60, step_s=0.005)
        story.wait_for(JobReported)
        story.backend.close()
        heir = ObservedEvents(self.make(story.rig), story.rig)
        heir.backend.start(order)
        assert list(heir.backend.inventory()) == [L0]
        ended = heir.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("reached", 60)
        assert heir.steps() == list(range(1, 61)), "everything is told again, nothing is run again"
        assert heir.told(LeaseGranted) == story.told(LeaseGranted)
        self.over(heir)

    def test_prepaid_time_ends_with_nobody_there_and_is_billed_no_longer(self, tmp_path: Path) -> None:
        self.needs_company()
        story = self.story(tmp_path, "hung")
        story.rent(for_s=200)
        story.start(until_step=10)
        story.wait_for(JobReported)
        story.backend.close()
        until = time.monotonic() + 10
        while list(self.running(story.rig)) and time.monotonic() < until:
            time.sleep(0.01)
        assert list(self.running(story.rig)) == []
        time.sleep(0.1)
        heir = ObservedEvents(self.make(story.rig), story.rig)
        gone = heir.wait_for(LeaseEnded)
        assert (gone.cause, gone.charged_usd <= 200.001) == ("expired", True)
        assert heir.told(SegmentEnded)[0].cause == "lost"
        self.over(heir)
