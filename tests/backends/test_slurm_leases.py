"""SlurmLeases with a scripted `squeue`: when it queries Slurm, and how it reads the answer."""

import time

import pytest

from shoestring.backends.slurm import leases as slurm_leases
from shoestring.backends.slurm.host import ALIVE, SIGNED, HostSignature
from shoestring.backends.slurm.leases import ObservedEnd, SlurmLeases
from shoestring.kernel.types import LeaseId
from shoestring.worker.task import write_json

L7 = LeaseId("l7")


@pytest.fixture
def leases(tmp_path, monkeypatch):
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
    leases = SlurmLeases(tmp_path / "run")
    leases.programs = programs
    leases.folder = tmp_path / "run"
    yield leases
    leases.close(no_leases=False)


def shows(leases, *jobs):
    (leases.programs / "jobs").write_text("".join(f"{job}\n" for job in jobs))


def look(leases, *wanted):
    for lease in wanted:
        (leases.folder / "leases" / lease).mkdir(exist_ok=True)
    until = time.monotonic() + 10
    while not leases.update(wanted):
        assert time.monotonic() < until, "it does not query"
        time.sleep(0.005)


def cancelled(leases):
    return (leases.programs / "cancelled").read_text().split()


def signs_in(leases, job="12"):
    folder = leases.folder / "leases" / L7
    write_json(folder / SIGNED, HostSignature(job=job, node="s0", address="s0", wall=0.0))
    (folder / ALIVE).touch()


@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ("RUNNING", None),
        ("PENDING", None),
        ("COMPLETING", None),
        ("NODE_FAIL", ObservedEnd("revoked", "Slurm ended its job (NODE_FAIL)")),
        ("PREEMPTED", ObservedEnd("revoked", "Slurm ended its job (PREEMPTED)")),
        ("FAILED", ObservedEnd("lost", "its host process died (FAILED)")),
    ],
)
def test_the_state_of_a_job_is_the_end_of_its_lease(leases, state, ending):
    leases.request(L7, 2e9)
    shows(leases, f"12|{state}|s0|l7")
    look(leases, L7)
    assert leases.ended(L7) == ending
    assert cancelled(leases) == []


def test_a_forgotten_job_is_gone_unless_the_query_was_before_its_submission(leases):
    look(leases)
    leases.request(L7, 2e9)
    assert leases.ended(L7) is None
    (leases.folder / "callbacks").mkdir()
    look(leases, L7)
    assert leases.ended(L7).why == "Slurm no longer knows its job"


def test_a_reused_job_number_is_another_job(leases):
    leases.request(L7, 2e9)
    shows(leases, "12|RUNNING|s0|l8")
    look(leases, L7, LeaseId("l8"))
    assert leases.ended(L7).why == "Slurm no longer knows its job"
    leases.release(L7)
    leases._cancelling["12"].result()
    assert cancelled(leases) == [], "it is another lease's job now"


def test_a_callback_triggers_a_query_at_once(leases):
    leases._query_every_s = 3600.0
    leases.request(L7, 2e9)
    shows(leases, "12|RUNNING|s0|l7")
    leases._queried_at = time.monotonic()
    assert not leases.update([L7])
    assert leases._query is None, "it is not yet time"
    (leases.folder / "callbacks").mkdir()
    write_json(leases.folder / "callbacks" / "12.json", {"job_id": "12", "state": "NODE_FAIL"})
    look(leases, L7)
    assert leases.ended(L7) is None, "its content does not count"


def test_of_two_jobs_for_a_lease_the_one_that_signed_in_is_kept(leases):
    leases.request(L7, 2e9)
    signs_in(leases, job="13")
    shows(leases, "12|PENDING||l7", "13|RUNNING|s0|l7")
    look(leases, L7)
    leases._cancelling["12"].result()
    assert (leases.job(L7), cancelled(leases)) == ("13", ["12"])


def test_a_silent_node_is_given_up_whatever_slurm_reports(leases, monkeypatch):
    monkeypatch.setattr(slurm_leases, "_SILENCE_S", 0.2)
    leases.request(L7, 2e9)
    signs_in(leases)
    shows(leases, "12|RUNNING|s0|l7")
    look(leases, L7)
    assert leases.ended(L7) is None
    time.sleep(0.3)
    assert leases.ended(L7).cause == "revoked"


def test_a_slurm_that_does_not_answer_changes_nothing(leases):
    leases.request(L7, 2e9)
    (leases.programs / "squeue").write_text("#!/bin/sh\necho Unable to contact slurm controller >&2\nexit 1\n")
    assert not leases.update([L7])
    leases._query.exception()
    assert not leases.update([L7])
    assert leases.ended(L7) is None


def test_a_released_lease_is_cancelled_again_by_the_next_controller(leases):
    leases.request(L7, 2e9)
    successor = SlurmLeases(leases.folder)
    successor.release(L7)
    successor.close(no_leases=False)
    assert cancelled(leases) == ["12"]
    assert SlurmLeases(leases.folder).job(L7) is None
