"""MPI programs on several nodes of a real Slurm: launched once, in one allocation, and again after a loss."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoestring.host.messages import SIGNED, HostSignature
from shoestring.kernel.decisions import ReleaseLease, RequestLease, StartSegment
from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseEnded
from shoestring.kernel.types import LeaseId
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.backend_rig import L0, L1, OFFER, S0, START, ObservedEvents, Rig, ScriptedProvider
from shoestring.testing.slowness import PATIENCE_S, slowness
from shoestring.worker.task import read_json
from shoestring.world.live.clock import RunClock
from tests.on_slurm.at_work import jobs_of, nothing_is_left, observe_slurm, on_slurm
from tests.on_slurm.mpi_sum import expected
from tests.on_slurm.small_cluster import wait_until

pytestmark = pytest.mark.heavy

PROGRAM = Path(__file__).with_name("mpi_sum.py")
RANKS = 4
LAUNCHERS = {"srun": ["srun", f"-n{RANKS}", "--mpi=pmi2"], "mpirun": ["mpirun", "-n", str(RANKS)]}


@pytest.fixture
def bag(tmp_path, slurm, mpi, monkeypatch):
    """Starts a bag of one MPI job on two nodes; its process, and the folder of the run."""
    for name, value in mpi.items():
        monkeypatch.setenv(name, value)
    started = []

    def start(launcher, *, steps, step_s=0.2, jobs=1, gangs="2"):
        command = [sys.executable, "-c", "from shoestring.cli import main; main()", "bag", "--on", "slurm"]
        command += ["--recipe", "scispot", "--gangs", gangs, "--launch", "once", "--max-machines", "3"]
        command += ["--name", "mpi", "--store", str(tmp_path), "--over", f"seed=1..{jobs}", "--"]
        command += [*LAUNCHERS[launcher], sys.executable, str(PROGRAM), str(steps), str(step_s)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        started.append(process)
        return process, RunFolder(tmp_path / "mpi")

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stderr.close()
    for node in slurm.steady:
        if slurm.state(node).startswith("down"):
            slurm.start_node(node)


def finish(process):
    _, errors = process.communicate(timeout=10 * PATIENCE_S)
    assert process.returncode == 0, errors.decode()


def log_of(folder):
    return "".join(path.read_text() for path in sorted(folder.path.glob("segments/s*/log.txt")))


def decisions_of(folder, kind):
    study = Study.in_folder(folder)
    return [decision for entry in study.entries() for decision in entry.decisions if isinstance(decision, kind)]


def total_of(folder):
    reports = [e.event for e in Study.in_folder(folder).entries() if isinstance(e.event, JobReported)]
    return reports[-1].metrics["total"]


def node_of(run_dir, lease):
    return read_json(run_dir / "leases" / lease / SIGNED, HostSignature).node


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_program_is_launched_once_and_has_its_ranks_on_two_nodes_of_one_job(bag, slurm, launcher):
    process, folder = bag(launcher, steps=10)
    wait_until(lambda: folder.path.exists() and '"step": 1' in log_of(folder), "it does not start", PATIENCE_S)
    held = slurm.jobs()
    finish(process)
    assert [job.split()[3] for job in held] == ["l0,l1"]
    printed = log_of(folder)
    assert sorted(line for line in printed.splitlines() if line.startswith("rank")) == [
        f"rank {rank} of {RANKS} from step 0" for rank in range(RANKS)
    ]
    assert total_of(folder) == expected(10, RANKS)
    nothing_is_left(slurm, folder.path)


@pytest.mark.parametrize(("launcher", "victim"), [("srun", L1), ("mpirun", L0)])
def test_a_gang_that_loses_a_node_starts_again_from_its_checkpoint(bag, slurm, launcher, victim):
    """l0 has the node that runs the script of the job, and rank 0."""
    process, folder = bag(launcher, steps=40)
    wait_until(lambda: folder.path.exists() and '"step": 5' in log_of(folder), "it does not start", PATIENCE_S)
    slurm.kill_node(node_of(folder.path, victim))
    finish(process)
    assert total_of(folder) == expected(40, RANKS)
    first, again = decisions_of(folder, StartSegment)
    assert (first.resume_from, again.leases) == (None, ("l2", "l3"))
    assert again.resume_from.step >= 4
    survivor = L0 if victim == L1 else L1
    ends = {e.event.lease: e.event.cause for e in Study.in_folder(folder).entries() if isinstance(e.event, LeaseEnded)}
    assert (ends[victim], ends[survivor]) == ("revoked", "released")
    given_back = {decision.lease: decision.why for decision in decisions_of(folder, ReleaseLease)}
    assert given_back[survivor] == f"the rest of an allocation that lost {victim}: no waiting job runs on one machine"
    nothing_is_left(slurm, folder.path)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_all_ranks_are_asked_to_save_and_stop(tmp_path, slurm, mpi, monkeypatch, launcher):
    for name, value in mpi.items():
        monkeypatch.setenv(name, value)
    clock = RunClock(started_at=START, wall_at=time.time(), speedup=20.0 / slowness())
    program = (*LAUNCHERS[launcher], sys.executable, str(PROGRAM), "10000", "0.1")
    rig = Rig(tmp_path / "run", "", ScriptedProvider(), clock, bag=True, command=program)
    observed = ObservedEvents(on_slurm(rig), rig)
    observed.rent_together(L0, L1)
    observed.start(shares={L0: 2, L1: 2})
    observed.wait_for(CheckpointSaved)
    observed.backend.signal(S0, "halt", 600.0)
    ended = observed.end_of(S0)
    assert (ended.cause, ended.step) == ("halted", observed.seen(CheckpointSaved)[-1].step)
    assert f"{RANKS} ranks were asked to leave" in (rig.run_dir / "segments" / S0 / "log.txt").read_text()
    observed.settle()
    observed.backend.close()
    nothing_is_left(slurm, rig.run_dir)


def request(lease, observed):
    end_by = observed.rig.clock.now() + 6000
    return RequestLease(lease=lease, offer=OFFER, end_by=end_by, gang=L0, why="test")


@pytest.fixture
def gang(tmp_path, slurm):
    """Three leases in one job."""
    observed = observe_slurm(tmp_path)
    leases = [LeaseId(f"l{number}") for number in range(3)]
    observed.rent_together(*leases)
    yield observed
    observed.settle()
    observed.backend.close()
    for node in slurm.steady:
        if slurm.state(node).startswith("down"):
            slurm.start_node(node)
    nothing_is_left(slurm, observed.rig.run_dir)


def nodes_held(slurm):
    (job,) = slurm.jobs()
    return len(slurm.query("scontrol", "show", "hostnames", job.split()[4]).split())


def test_leases_that_share_a_job_are_given_back_one_by_one(gang, slurm):
    assert nodes_held(slurm) == 3
    gang.backend.release(L1)
    assert gang.wait_for(LeaseEnded).lease == L1
    wait_until(lambda: gang.poll() or nodes_held(slurm) == 2, "its node is not given back", PATIENCE_S)
    assert list(gang.backend.inventory()) == [L0, "l2"]


@pytest.mark.parametrize(("released", "left"), [((L1, "l2"), 1), ((L0, L1), 2), ((L1, L0), 2)])
def test_the_node_of_the_script_stays_in_the_job_until_its_last_lease_ends(gang, slurm, released, left):
    for lease in released:
        gang.backend.release(lease)
    wait_until(lambda: gang.poll() or nodes_held(slurm) == left, "a node is not given back", PATIENCE_S)
    assert len(list(gang.backend.inventory())) == 1


def test_leases_that_share_a_job_are_lost_one_by_one(gang, slurm):
    """Also with the node that runs the script of the job."""
    for lease, left in ((L0, [L1, "l2"]), (L1, ["l2"])):
        slurm.kill_node(node_of(gang.rig.run_dir, lease))
        ended = gang.wait_for(LeaseEnded, lambda event, lease=lease: event.lease == lease)
        assert ended.cause == "revoked"
        assert list(gang.backend.inventory()) == left
        assert len(slurm.jobs()) == 1


def test_a_gang_submitted_before_a_crash_is_adopted_and_not_submitted_again(gang, slurm):
    number = jobs_of(gang.rig.run_dir).job(L0)
    for lease in ("l0", "l1", "l2"):
        (gang.rig.run_dir / "leases" / lease / "job.json").unlink()
    gang.backend = on_slurm(gang.rig)
    for lease in ("l0", "l1", "l2"):
        gang.backend.acquire(request(LeaseId(lease), gang))
    wait_until(lambda: gang.poll() or jobs_of(gang.rig.run_dir).job(LeaseId("l2")) == number)
    assert [job.split()[0] for job in slurm.jobs()] == [number]


def test_the_last_host_of_a_job_ends_it_without_a_controller(gang, slurm):
    """Also if the node that runs its script is gone."""
    slurm.kill_node(node_of(gang.rig.run_dir, L0))
    gang.wait_for(LeaseEnded)
    for lease in (L1, LeaseId("l2")):
        (gang.rig.run_dir / "leases" / lease / "hosting.json").unlink()
    wait_until(lambda: slurm.jobs() == [], "the job is still there", PATIENCE_S)
