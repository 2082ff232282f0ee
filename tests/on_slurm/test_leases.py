"""Leases on a real Slurm: requested once, found again, preempted with and without a warning, and never left behind."""

import subprocess
from dataclasses import replace

import pytest

from shoestring.backends.folder_post import FolderPost
from shoestring.backends.lease_record import LeaseRecord
from shoestring.errors import PermanentError
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import (
    CheckpointSaved,
    JobReported,
    LeaseDenied,
    LeaseEnded,
    LeaseGranted,
    RevocationNoticed,
)
from shoestring.kernel.types import LeaseId
from shoestring.testing.backend_rig import L0, L1, OFFER, S0, S1, START, ObservedEvents
from tests.on_slurm.at_work import jobs_of, nothing_is_left, observe_slurm, on_slurm
from tests.on_slurm.small_cluster import wait_until

pytestmark = pytest.mark.heavy


@pytest.fixture
def observe(tmp_path, slurm):
    observed = []

    def make(*arguments, **options):
        observed.append(observe_slurm(tmp_path, *arguments, **options))
        return observed[-1]

    yield make
    observed[-1].settle()
    observed[-1].backend.close()
    nothing_is_left(slurm, observed[-1].rig.run_dir)


def job_of(observed, lease):
    return jobs_of(observed.rig.run_dir).job(lease)


def submit(jobs, rig, lease):
    FolderPost(rig.site).keep_until(lease, 2e9)
    jobs.rent(
        LeaseRecord(request=RequestLease(lease=lease, offer=OFFER, end_by=2e9, why="test"), end_by=2e9), again=False
    )


def successor_of(observed):
    """As after a kill -9: another instance on the same folder."""
    successor = ObservedEvents(on_slurm(observed.rig), observed.rig)
    observed.backend = successor.backend
    return successor


def test_a_job_submitted_before_a_crash_is_adopted_and_not_submitted_again(observe, slurm):
    observed = observe()
    order = RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test")
    observed.backend.acquire(order)
    number = job_of(observed, L0)
    (observed.rig.run_dir / "leases" / L0 / "job.json").unlink()
    successor = successor_of(observed)
    successor.backend.acquire(order)
    assert job_of(successor, L0) == number
    successor.wait_for(LeaseGranted)
    assert len(slurm.jobs()) == 1


def test_a_job_of_this_run_without_a_lease_is_cancelled_and_those_of_others_are_not(observe, slurm, tmp_path):
    observed = observe()
    observed.rent(L0)
    (observed.rig.run_dir / "leases" / "l9").mkdir()
    submit(jobs_of(observed.rig.run_dir), observed.rig, LeaseId("l9"))
    elsewhere = replace(observed.rig, run_dir=tmp_path / "another")
    another = jobs_of(elsewhere.run_dir)
    submit(another, elsewhere, L0)
    assert len(slurm.jobs()) == 3
    successor = successor_of(observed)
    wait_until(lambda: successor.poll() or not any(" l9" in job for job in slurm.jobs()))
    assert sorted(job.split()[0] for job in slurm.jobs()) == sorted([job_of(successor, L0), another.job(L0)])
    another.end(L0)
    another.close(leased=False)


def test_the_trial_saves_and_stops_on_slurms_warning(observe, slurm):
    observed = observe()
    observed.rent(L0)
    observed.start(S0, until_step=10_000, step_s=0.05)
    observed.wait_for(JobReported)
    slurm.query("scancel", job_of(observed, L0))
    ended = observed.end_of(S0)
    gone = observed.wait_for(LeaseEnded)
    assert (ended.cause, gone.cause) == ("halted", "revoked")
    assert observed.seen(CheckpointSaved)[-1].step == ended.step
    assert observed.wait_for(RevocationNoticed).lease == L0


def test_a_gang_on_two_nodes_trains_together_and_is_lost_with_one_of_them(observe, slurm):
    observed = observe("together")
    observed.rent(L0)
    observed.rent(L1)
    observed.start(S0, until_step=4, shares={L0: 1, L1: 2})
    assert observed.end_of(S0).cause == "reached", observed.end_of(S0).detail
    assert [step["world_size"] for step in observed.metrics(S0)] == [3.0] * 4
    observed.start(S1, until_step=10_000, shares={L0: 1, L1: 2}, step_s=0.05)
    observed.wait_for(JobReported, lambda event: event.segment == S1)
    node = FolderPost(observed.rig.site).signed(L1).node
    slurm.kill_node(node)
    ended, gone = observed.end_of(S1), observed.wait_for(LeaseEnded)
    slurm.start_node(node)
    assert (ended.cause, gone.lease, gone.cause) == ("lost", L1, "revoked")
    assert list(observed.backend.inventory()) == [L0]


def test_a_job_that_does_not_start_in_time_is_denied_and_cancelled(observe, slurm):
    observed = observe()
    leases = [LeaseId(f"l{number}") for number in range(len(slurm.steady))]
    for lease in leases:
        observed.rent(lease)
    late = LeaseId("late")
    observed.backend.acquire(RequestLease(lease=late, offer=OFFER, end_by=observed.rig.clock.now() + 40, why="test"))
    assert observed.wait_for(LeaseDenied).reason == "no_capacity"
    assert list(observed.backend.inventory()) == leases
    wait_until(lambda: observed.poll() or len(slurm.jobs()) == len(leases))


def test_a_refusal_of_slurm_is_raised_and_denied(observe):
    observed = observe(partition="nowhere")
    with pytest.raises(PermanentError, match=r"Slurm refuses \(sbatch\): .*[Ii]nvalid partition"):
        observed.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
    assert observed.wait_for(LeaseDenied).reason == "quota"


def test_a_host_that_cannot_run_on_its_node_is_reported_once_and_not_retried_for_ever(observe, monkeypatch):
    observed = observe()
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    observed.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
    assert observed.wait_for(LeaseDenied).reason == "no_capacity"
    with pytest.raises(PermanentError, match=r"does not start on its node: .*/nowhere/python") as caught:
        observed.backend.acquire(RequestLease(lease=L1, offer=OFFER, end_by=START + 6000, why="test"))
    assert "same on all nodes" in caught.value.hint


def test_an_outage_of_slurm_costs_only_time(observe, slurm):
    observed = observe()
    observed.rent(L0)
    observed.start(S0, until_step=5, step_s=0.1)
    slurm.stop_controller()
    order = RequestLease(lease=L1, offer=OFFER, end_by=START + 6000, why="test")
    observed.backend.acquire(order)
    assert observed.end_of(S0).cause == "reached"
    slurm.start_controller()
    observed.wait_for(LeaseGranted, lambda event: event.lease == L1)


def test_a_machine_without_slurm_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    observed = observe_slurm(tmp_path)
    with pytest.raises(PermanentError, match="there is no sbatch here"):
        observed.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
    observed.backend.close()


def test_jobs_have_the_name_of_the_run_and_the_lease(observe, slurm):
    observed = observe()
    observed.rent(L0)
    (job,) = slurm.jobs()
    assert job.split()[1] == jobs_of(observed.rig.run_dir).name
    assert job.split()[3] == L0
    listed = subprocess.run(
        ["squeue", "--noheader", f"--name={jobs_of(observed.rig.run_dir).name}", "--format=%i"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.split() == [job_of(observed, L0)]
