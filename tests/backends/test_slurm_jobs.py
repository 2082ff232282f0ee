"""SlurmJobs with a scripted `squeue`: when it queries Slurm, and how it reads the answer."""

import time
from datetime import datetime

import pytest

from shoestring.backends import folder_post
from shoestring.backends.folder_post import FolderPost
from shoestring.backends.hosted_machines import HostedMachines
from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import MachineEnd
from shoestring.backends.slurm import jobs as slurm_jobs
from shoestring.backends.slurm.jobs import SlurmJobs
from shoestring.host.messages import ALIVE, SIGNED, HostSignature
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import LeaseId
from shoestring.testing.backend_rig import OFFER
from shoestring.testing.backend_suite import BackendSuite
from shoestring.worker.task import write_json
from shoestring.world.live.clock import RunClock

L7 = LeaseId("l7")
REQUEST = LeaseRecord(request=RequestLease(lease=L7, offer=OFFER, end_by=2e9, why="test"), end_by=2e9)


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """One lease, whose job will be 12."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "squeue").write_text(f"#!/bin/sh\n/bin/cat {programs}/jobs; echo >> {programs}/looks\n")
    (programs / "sbatch").write_text("#!/bin/sh\necho 12\n")
    (programs / "scancel").write_text(f'#!/bin/sh\necho "$1" >> {programs}/cancelled\n')
    for name in ("squeue", "sbatch", "scancel"):
        (programs / name).chmod(0o755)
    for name in ("jobs", "looks", "cancelled"):
        (programs / name).touch()
    monkeypatch.setenv("PATH", str(programs))
    (tmp_path / "run" / "leases" / L7).mkdir(parents=True)
    jobs = successor(tmp_path)
    jobs.programs = programs
    jobs.folder = tmp_path / "run"
    yield jobs
    jobs.close(leased=True)


def successor(tmp_path, **options):
    rig = BackendSuite().rig(tmp_path)
    post = FolderPost(rig.site)
    jobs = SlurmJobs(rig.run_dir, post, **options)
    jobs.post = post
    return jobs


def shows(jobs, *lines):
    (jobs.programs / "jobs").write_text("".join(f"{line}\n" for line in lines))


def look(jobs, *wanted):
    for lease in wanted:
        (jobs.folder / "leases" / lease).mkdir(exist_ok=True)
    until = time.monotonic() + 10
    while not jobs.update(wanted):
        assert time.monotonic() < until, "it does not query"
        time.sleep(0.005)


def cancelled(jobs):
    return (jobs.programs / "cancelled").read_text().split()


def signs_in(jobs, job="12"):
    folder = jobs.folder / "leases" / L7
    write_json(folder / SIGNED, HostSignature(job=job, node="s0", address="s0", wall=0.0))
    (folder / ALIVE).touch()


@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ("RUNNING", None),
        ("PENDING", None),
        ("COMPLETING", None),
        ("NODE_FAIL", MachineEnd("revoked", "Slurm ended its job (NODE_FAIL)")),
        ("PREEMPTED", MachineEnd("revoked", "Slurm ended its job (PREEMPTED)")),
        ("FAILED", MachineEnd("lost", "its host process died (FAILED)")),
    ],
)
def test_the_state_of_a_job_is_the_end_of_its_lease(jobs, state, ending):
    jobs.rent(REQUEST, again=False)
    shows(jobs, f"12|{state}|s0|N/A|l7")
    look(jobs, L7)
    assert jobs.ended(L7) == ending
    assert cancelled(jobs) == []


def test_a_forgotten_job_is_gone_unless_the_query_was_before_its_submission(jobs):
    look(jobs)
    jobs.rent(REQUEST, again=False)
    assert jobs.ended(L7) is None
    (jobs.folder / "callbacks").mkdir()
    look(jobs, L7)
    assert jobs.ended(L7).why == "Slurm no longer knows its job"


def test_a_reused_job_number_is_another_job(jobs):
    jobs.rent(REQUEST, again=False)
    shows(jobs, "12|RUNNING|s0|N/A|l8")
    look(jobs, L7, LeaseId("l8"))
    assert jobs.ended(L7).why == "Slurm no longer knows its job"
    jobs.end(L7)
    jobs._cancelling["12", L7].result()
    assert cancelled(jobs) == [], "it is another lease's job now"


def test_a_callback_triggers_a_query_at_once(jobs):
    jobs._query_every_s = 3600.0
    jobs.rent(REQUEST, again=False)
    shows(jobs, "12|RUNNING|s0|N/A|l7")
    jobs._queried_at = time.monotonic()
    assert not jobs.update([L7])
    assert jobs._query is None, "it is not yet time"
    (jobs.folder / "callbacks").mkdir()
    write_json(jobs.folder / "callbacks" / "12.json", {"job_id": "12", "state": "NODE_FAIL"})
    look(jobs, L7)
    assert jobs.ended(L7) is None, "its content does not count"


def test_of_two_jobs_for_a_lease_the_one_that_signed_in_is_kept(jobs):
    jobs.rent(REQUEST, again=False)
    signs_in(jobs, job="13")
    shows(jobs, "12|PENDING||N/A|l7", "13|RUNNING|s0|N/A|l7")
    look(jobs, L7)
    jobs._cancelling["12", None].result()
    assert (jobs.job(L7), cancelled(jobs)) == ("13", ["12"])


def test_a_silent_node_is_given_up_whatever_slurm_reports(jobs, monkeypatch):
    machines = HostedMachines(jobs, jobs.post, RunClock(0.0, time.time(), speedup=1.0))
    machines.request(REQUEST, again=False)
    signs_in(jobs)
    shows(jobs, "12|RUNNING|s0|N/A|l7")
    look(jobs, L7)
    machines.update([L7])
    assert machines.look(REQUEST).ended is None
    monkeypatch.setattr(folder_post, "_SILENCE_S", 0.2)
    time.sleep(0.3)
    machines.update([L7])
    assert machines.look(REQUEST).ended == MachineEnd("revoked", "its node has been silent for 0 s")


def test_a_slurm_that_does_not_answer_changes_nothing(jobs):
    jobs.rent(REQUEST, again=False)
    (jobs.programs / "squeue").write_text("#!/bin/sh\necho Unable to contact slurm controller >&2\nexit 1\n")
    assert not jobs.update([L7])
    jobs._query.exception()
    assert not jobs.update([L7])
    assert jobs.ended(L7) is None


def test_a_released_lease_is_cancelled_again_by_the_next_controller(jobs, tmp_path):
    jobs.rent(REQUEST, again=False)
    another = successor(tmp_path)
    another.end(L7)
    another.close(leased=True)
    assert cancelled(jobs) == ["12"]
    assert successor(tmp_path).job(L7) is None


# -- nodes with a price ------------------------------------------------------------------------------------------------
def test_a_node_that_is_free_of_charge_counts_from_when_its_host_signed_in(jobs):
    assert jobs.charged_from(L7, 1000.0) == 1000.0


def test_a_node_with_a_price_costs_money_from_the_start_of_its_job(jobs, tmp_path):
    priced = successor(tmp_path, labels={OFFER: "spot"}, features=["spot"])
    priced.programs, priced.folder = jobs.programs, jobs.folder
    priced.rent(REQUEST, again=False)
    started_at = datetime(2026, 11, 16, 6, 45, 8).timestamp()
    assert priced.charged_from(L7, started_at + 26) is None, "Slurm has not been queried since"
    shows(jobs, "12|RUNNING|c0|2026-11-16T06:45:08|l7")
    look(priced, L7)
    assert priced.charged_from(L7, started_at + 26) == started_at
    priced.close(leased=True)


@pytest.mark.usefixtures("jobs")
def test_a_slurm_that_does_not_say_when_a_job_started_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_jobs, "_START_TIMEOUT_S", -1.0)
    priced = successor(tmp_path, labels={OFFER: "spot"})
    assert priced.charged_from(L7, 1000.0) == 1000.0
    priced.close(leased=True)


@pytest.mark.parametrize(
    ("label", "options"),
    [("spot", ["--partition=cloud", "--constraint=spot"]), ("big", ["--partition=big"])],
    ids=["a feature", "a partition"],
)
def test_a_labelled_node_is_requested_by_its_feature_or_its_partition(jobs, tmp_path, label, options):
    (jobs.programs / "sbatch").write_text(f'#!/bin/sh\necho "$@" > {jobs.programs}/asked\necho 12\n')
    priced = successor(tmp_path, labels={OFFER: label}, features=["spot"], partition="cloud")
    priced.rent(REQUEST, again=False)
    words = (jobs.programs / "asked").read_text().split()
    assert [word for word in words if word.startswith(("--partition", "--constraint"))] == options
    priced.close(leased=True)
