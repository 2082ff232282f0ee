"""BackendSuite: the laws of backends, as tests to run on your own.

class TestMine(BackendSuite):
    def make(self, rig):
        return MyBackend(rig.site, ...)

Times are market seconds; a hundred of them pass in a real second.
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
from shoestring.testing.slowness import PATIENCE_S


class BackendSuite(GangLaws):
    """Subclass it, define `make`, and run pytest."""

    # -- machines ------------------------------------------------------------------------------------------------------
    def test_a_lease_is_granted_used_and_billed(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent()
        assert list(observed.backend.inventory()) == [L0]
        observed.backend.release(L0)
        ended = observed.wait_for(LeaseEnded)
        granted = observed.seen(LeaseGranted)[0]
        assert ended.cause == "released"
        assert abs(ended.charged_usd - (ended.at - granted.at)) < 1e-6
        self.finish(observed)

    def test_acquire_and_release_are_idempotent(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent()
        end_by = observed.rig.clock.now() + 60
        observed.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=end_by, why="requested again"))
        observed.backend.release(L0)
        observed.wait_for(LeaseEnded)
        observed.backend.release(L0)
        observed.backend.release(LeaseId("unknown"))
        observed.poll()
        assert [type(event) for event in observed.events] == [LeaseGranted, LeaseEnded]
        self.finish(observed)

    def test_a_denial_is_reported_with_its_reason(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path, denied={L0: "no_capacity"})
        observed.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
        assert observed.wait_for(LeaseDenied).reason == "no_capacity"
        self.finish(observed)

    def test_prepaid_time_ends_unless_it_is_extended(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent(L0, for_s=40)
        observed.rent(L1, for_s=100)
        later = observed.rig.clock.now() + 500
        observed.backend.extend(ExtendLease(lease=L1, end_by=later, why="test"))
        ended = observed.wait_for(LeaseEnded)
        assert (ended.lease, ended.cause) == (L0, "expired")
        assert ended.charged_usd <= 40
        assert list(observed.backend.inventory()) == [L1]
        self.finish(observed)

    # -- user code -----------------------------------------------------------------------------------------------------
    def test_a_job_runs_to_its_target_step_and_saves_there(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent()
        observed.start(until_step=3)
        ended = observed.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("reached", 3)
        assert observed.steps() == [1, 2, 3]
        assert [saved.step for saved in observed.seen(CheckpointSaved)] == [3]
        kinds = [type(event) for event in observed.events]
        assert kinds.index(SegmentStarted) < kinds.index(JobReported) < kinds.index(CheckpointSaved)
        self.finish(observed)

    def test_a_job_of_a_bag_runs_until_its_code_ends(self, tmp_path: Path) -> None:
        rig = self.rig(tmp_path, "five_steps")
        rig.bag = True
        observed = ObservedEvents(self.make(rig), rig)
        observed.rent()
        observed.start(until_step=1)
        ended = observed.wait_for(SegmentEnded)
        assert (ended.cause, ended.step, ended.detail) == ("completed", 5, "")
        assert observed.steps() == [1, 2, 3, 4, 5]
        assert [saved.step for saved in observed.seen(CheckpointSaved)] == [1], (
            "the first: none is known to be the last"
        )
        self.finish(observed)

    def test_a_job_resumes_from_its_checkpoint(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent()
        observed.start(S0, until_step=2)
        observed.wait_for(SegmentEnded)
        observed.start(S1, until_step=5, resume_from=observed.seen(CheckpointSaved)[0].ref)
        ended = observed.wait_for(SegmentEnded, lambda event: event.segment == S1)
        assert (ended.cause, ended.step, observed.steps(S1)) == ("reached", 5, [3, 4, 5])
        assert observed.seen(JobReported)[-1].metrics["trained"] == 5
        self.finish(observed)

    def test_a_job_trains_on_the_same_data_fraction_after_a_restore(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path, "sampled")
        observed.rent()
        observed.start(S0, until_step=1, fraction=0.5, fractions=(0.1, 0.2), seed=7)
        observed.wait_for(SegmentEnded)
        ref = observed.seen(CheckpointSaved)[0].ref
        observed.start(S1, until_step=2, resume_from=ref, fraction=0.5, fractions=(0.2,), seed=7)
        observed.end_of(S1)
        (first,), (again,) = observed.metrics(S0), observed.metrics(S1)
        assert first == again, "other samples after the restore"
        snapshots = [(event.segment, event.fraction) for event in observed.seen(SnapshotReported)]
        assert snapshots == [(S0, 0.1), (S0, 0.2), (S1, 0.2)]
        smallest, smaller, smaller_again = (event.metrics["loss"] for event in observed.seen(SnapshotReported))
        assert smallest < smaller == smaller_again < first["loss"], "the fractions are not nested"
        self.finish(observed)

    def test_start_is_idempotent(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent()
        order = observed.start(until_step=2)
        observed.backend.start(order)
        observed.wait_for(SegmentEnded)
        observed.backend.start(order)
        observed.poll()
        assert observed.steps() == [1, 2]
        assert len(observed.seen(SegmentEnded)) == 1
        self.finish(observed)

    def test_an_error_is_reported_in_one_line(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path, "broken")
        observed.rent()
        observed.start()
        ended = observed.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("failed", 2)
        assert ended.detail.startswith("ValueError: the loss went through the roof (user_code.py:")
        self.finish(observed)

    def test_code_that_never_reports_the_metric_fails(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path, "silent")
        observed.rent()
        observed.start()
        ended = observed.wait_for(SegmentEnded)
        assert ended.cause == "failed"
        assert ended.detail.startswith("never reported 'loss'; reported: accuracy")
        self.finish(observed)

    def test_a_segment_on_an_ended_lease_is_lost(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent()
        observed.backend.release(L0)
        observed.start()
        assert observed.wait_for(SegmentEnded).cause == "lost"
        assert observed.seen(SegmentStarted) == []
        self.finish(observed)

    # -- revocation ----------------------------------------------------------------------------------------------------
    def test_a_job_saves_and_stops_on_a_notice(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path, revoked={L0: (150.0, 250.0)})
        observed.rent()
        observed.start(until_step=10_000, step_s=0.01)
        ended = observed.wait_for(SegmentEnded)
        gone = observed.wait_for(LeaseEnded)
        noticed = observed.seen(RevocationNoticed)[0]
        assert ended.cause == "halted"
        assert observed.seen(CheckpointSaved)[-1].step == ended.step == observed.steps()[-1]
        assert noticed.at <= ended.at <= gone.at
        assert (gone.cause, gone.at) == ("revoked", noticed.gone_at)
        self.finish(observed)

    def test_a_revocation_without_notice_loses_the_job(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path, revoked={L0: (120.0, 120.0)})
        observed.rent()
        observed.start(until_step=10_000, step_s=0.01)
        gone = observed.wait_for(LeaseEnded)
        ended = observed.seen(SegmentEnded)[0]
        assert (ended.cause, gone.cause) == ("lost", "revoked")
        assert observed.seen(RevocationNoticed) == []
        assert observed.seen(CheckpointSaved) == []
        assert ended.at <= gone.at
        self.finish(observed)

    def test_a_job_saves_and_stops_just_before_prepaid_time_ends(self, tmp_path: Path) -> None:
        observed = self.observe(tmp_path)
        observed.rent(for_s=220)
        observed.start(until_step=10_000, step_s=0.01)
        ended = observed.wait_for(SegmentEnded)
        assert ended.cause == "halted"
        assert observed.seen(CheckpointSaved)[-1].step == ended.step
        assert observed.wait_for(LeaseEnded).cause == "expired"
        self.finish(observed)

    def test_a_hung_job_is_killed_at_its_time_limit(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.observe(tmp_path, "hung")
        observed.rent()
        observed.start(time_limit_s=100)
        ended = observed.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("overran", 1)
        assert list(observed.backend.inventory()) == [L0]
        self.finish(observed)

    # -- orders to a running job ---------------------------------------------------------------------------------------
    def test_a_halted_job_saves_and_stops(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.observe(tmp_path)
        observed.rent()
        observed.start(until_step=10_000, step_s=0.01)
        observed.wait_for(JobReported)
        observed.backend.signal(S0, "halt", 1000.0)
        ended = observed.wait_for(SegmentEnded)
        assert ended.cause == "halted"
        assert observed.seen(CheckpointSaved)[-1].step == ended.step
        self.finish(observed)

    def test_a_job_that_does_not_halt_is_killed(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.observe(tmp_path, "hung")
        observed.rent()
        observed.start(until_step=10)
        observed.wait_for(JobReported)
        observed.backend.signal(S0, "halt", 1.0)
        assert observed.wait_for(SegmentEnded).cause == "lost"
        self.finish(observed)

    def test_saves_come_on_request_and_as_planned(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.observe(tmp_path)
        observed.rent()
        observed.start(until_step=10_000, step_s=0.005)
        observed.wait_for(JobReported)
        observed.backend.signal(S0, "save", 0.0)
        first = observed.wait_for(CheckpointSaved)
        observed.backend.plan_saves(PlanSaves(segment=S0, every_s=5.0, why="test"))
        observed.wait_for(CheckpointSaved, lambda saved: saved.step > first.step)
        assert observed.seen(SegmentEnded) == []
        self.finish(observed)

    def test_releasing_a_lease_kills_its_job(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.observe(tmp_path, "hung")
        observed.rent()
        observed.start(until_step=10)
        observed.wait_for(JobReported)
        observed.backend.release(L0)
        assert list(self.running(observed.rig)) == []
        observed.wait_for(LeaseEnded)
        assert observed.seen(SegmentEnded)[0].cause == "lost"
        self.finish(observed)

    # -- without a controller ------------------------------------------------------------------------------------------
    def test_another_instance_adopts_running_jobs(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.observe(tmp_path)
        observed.rent()
        order = observed.start(until_step=60, step_s=0.005)
        observed.wait_for(JobReported)
        observed.backend.close()
        successor = ObservedEvents(self.make(observed.rig), observed.rig)
        successor.backend.start(order)
        assert list(successor.backend.inventory()) == [L0]
        ended = successor.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("reached", 60)
        assert successor.steps() == list(range(1, 61)), "every event is reported again, nothing runs again"
        assert successor.seen(LeaseGranted) == observed.seen(LeaseGranted)
        self.finish(successor)

    def test_prepaid_time_and_its_bill_end_without_a_controller(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.observe(tmp_path, "hung")
        observed.rent(for_s=200)
        observed.start(until_step=10)
        observed.wait_for(JobReported)
        observed.backend.close()
        until = time.monotonic() + PATIENCE_S
        while list(self.running(observed.rig)) and time.monotonic() < until:
            time.sleep(0.01)
        assert list(self.running(observed.rig)) == []
        time.sleep(0.1)
        successor = ObservedEvents(self.make(observed.rig), observed.rig)
        gone = successor.wait_for(LeaseEnded)
        assert (gone.cause, gone.charged_usd <= 200.001) == ("expired", True)
        assert successor.seen(SegmentEnded)[0].cause == "lost"
        self.finish(successor)
