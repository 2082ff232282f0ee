"""Leases on a real Slurm: asked for once, found again, taken away with and without a warning, and never left behind."""

import subprocess

import pytest

from shoestring.backends.slurm.leases import SlurmLeases
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
from tests.on_slurm.at_work import a_story, nothing_is_left, on_slurm
from tests.on_slurm.small_cluster import wait_until

pytestmark = pytest.mark.heavy


@pytest.fixture
def story(tmp_path, slurm):
    told = []

    def make(*arguments, **options):
        told.append(a_story(tmp_path, *arguments, **options))
        return told[-1]

    yield make
    told[-1].settle()
    told[-1].backend.close()
    nothing_is_left(slurm, told[-1].rig.run_dir)


def job_of(story, lease):
    return story.backend._slurm.job(lease)


def heir_of(story):
    """As after a kill -9: another instance on the same folder."""
    heir = ObservedEvents(on_slurm(story.rig), story.rig)
    story.backend = heir.backend
    return heir


def test_a_job_that_was_submitted_and_not_recorded_is_adopted_and_not_asked_for_again(story, slurm):
    told = story()
    order = RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test")
    told.backend.acquire(order)
    number = job_of(told, L0)
    (told.rig.run_dir / "leases" / L0 / "job.json").unlink()
    heir = heir_of(told)
    heir.backend.acquire(order)
    assert job_of(heir, L0) == number
    heir.wait_for(LeaseGranted)
    assert len(slurm.jobs()) == 1


def test_a_job_of_this_run_that_nobody_wants_is_cancelled_and_those_of_others_are_not(story, slurm, tmp_path):
    told = story()
    told.rent(L0)
    (told.rig.run_dir / "leases" / "l9").mkdir()
    told.backend._slurm.ask(LeaseId("l9"), 2e9)
    another = SlurmLeases(tmp_path / "another")
    (tmp_path / "another" / "leases" / L0).mkdir(parents=True)
    another.ask(L0, 2e9)
    assert len(slurm.jobs()) == 3
    heir = heir_of(told)
    wait_until(lambda: heir.look() or not any(" l9" in job for job in slurm.jobs()))
    assert sorted(job.split()[0] for job in slurm.jobs()) == sorted([job_of(heir, L0), another.job(L0)])
    another.give_back(L0)
    another.close(nothing_rented=True)


def test_on_slurms_warning_the_job_saves_and_leaves(story, slurm):
    told = story()
    told.rent(L0)
    told.start(S0, until_step=10_000, step_s=0.05)
    told.wait_for(JobReported)
    slurm.ask("scancel", job_of(told, L0))
    ended = told.end_of(S0)
    gone = told.wait_for(LeaseEnded)
    assert (ended.cause, gone.cause) == ("halted", "revoked")
    assert told.told(CheckpointSaved)[-1].step == ended.step
    assert told.wait_for(RevocationNoticed).lease == L0


def test_a_gang_on_two_nodes_trains_together_and_is_lost_with_one_of_them(story, slurm):
    told = story("together")
    told.rent(L0)
    told.rent(L1)
    told.start(S0, until_step=4, shares={L0: 1, L1: 2})
    assert told.end_of(S0).cause == "reached", told.end_of(S0).detail
    assert [step["world_size"] for step in told.metrics(S0)] == [3.0] * 4
    told.start(S1, until_step=10_000, shares={L0: 1, L1: 2}, step_s=0.05)
    told.wait_for(JobReported, lambda event: event.segment == S1)
    node = told.backend._slurm.signed(L1).node
    slurm.kill_node(node)
    ended, gone = told.end_of(S1), told.wait_for(LeaseEnded)
    slurm.start_node(node)
    assert (ended.cause, gone.lease, gone.cause) == ("lost", L1, "revoked")
    assert list(told.backend.inventory()) == [L0]


def test_what_slurm_does_not_grant_in_time_is_denied_and_asked_for_no_longer(story, slurm):
    told = story()
    leases = [LeaseId(f"l{number}") for number in range(len(slurm.steady))]
    for lease in leases:
        told.rent(lease)
    late = LeaseId("late")
    told.backend.acquire(RequestLease(lease=late, offer=OFFER, end_by=told.rig.clock.now() + 40, why="test"))
    assert told.wait_for(LeaseDenied).reason == "no_capacity"
    assert list(told.backend.inventory()) == leases
    wait_until(lambda: told.look() or len(slurm.jobs()) == len(leases))


def test_what_slurm_refuses_is_said(story):
    told = story(partition="nowhere")
    with pytest.raises(PermanentError, match=r"Slurm refuses \(sbatch\): .*[Ii]nvalid partition"):
        told.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
    assert told.wait_for(LeaseDenied).reason == "quota"


def test_a_host_that_cannot_run_on_its_node_is_said_once_and_not_tried_for_ever(story, monkeypatch):
    told = story()
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    told.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
    assert told.wait_for(LeaseDenied).reason == "no_capacity"
    with pytest.raises(PermanentError, match=r"does not start on its node: .*/nowhere/python") as caught:
        told.backend.acquire(RequestLease(lease=L1, offer=OFFER, end_by=START + 6000, why="test"))
    assert "same on all nodes" in caught.value.hint


def test_a_slurm_that_does_not_answer_for_a_while_costs_nothing_but_time(story, slurm):
    told = story()
    told.rent(L0)
    told.start(S0, until_step=5, step_s=0.1)
    slurm.stop_controller()
    order = RequestLease(lease=L1, offer=OFFER, end_by=START + 6000, why="test")
    told.backend.acquire(order)
    assert told.end_of(S0).cause == "reached"
    slurm.start_controller()
    told.wait_for(LeaseGranted, lambda event: event.lease == L1)


def test_on_a_machine_without_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    told = a_story(tmp_path)
    with pytest.raises(PermanentError, match="there is no sbatch here"):
        told.backend.acquire(RequestLease(lease=L0, offer=OFFER, end_by=START + 6000, why="test"))
    told.backend.close()


def test_the_jobs_carry_the_names_by_which_people_find_them(story, slurm):
    told = story()
    told.rent(L0)
    (job,) = slurm.jobs()
    assert job.split()[1] == told.backend._slurm.name
    assert job.split()[3] == L0
    listed = subprocess.run(
        ["squeue", "--noheader", f"--name={told.backend._slurm.name}", "--format=%i"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.split() == [job_of(told, L0)]
