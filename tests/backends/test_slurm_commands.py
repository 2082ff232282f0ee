"""What Slurm's commands answered on a real cluster, and what we make of it."""

import os

import pytest

from shoestring.backends.slurm import commands as slurm
from shoestring.backends.slurm.check import SlurmCluster, look_around, slurm_partition
from shoestring.errors import BackendError, PermanentError, SpecError, TransientError

JOBS = """\
5|RUNNING|c0|l8
7|PENDING||l11
1|CANCELLED|s0|l7
6|NODE_FAIL|s0|l9
9|COMPLETING|s1|l12
slurm_load_jobs error: Socket timed out on send/recv operation
"""
NODES = """\
c0|cloud|3|c5.large,us-east-1a
c1|cloud|3|(null)
s0|steady*|16|(null)
s1|steady*|8|big
s1|all|8|big
"""
CLOUD_NODE = (
    "NodeName=c0 Arch=x86_64 CoresPerSocket=1 CPUAlloc=3 NodeAddr=127.0.0.1 Port=33107 Version=22.05.8 "
    "State=ALLOCATED+CLOUD+POWERING_DOWN ThreadsPerCore=1 Partitions=cloud BootTime=2026-11-16T06:45:08\n"
)


def test_jobs_are_read_and_what_is_no_job_is_skipped():
    jobs = slurm.read_jobs(JOBS)
    assert jobs[0] == slurm.SlurmJob("5", "RUNNING", "c0", "l8")
    assert jobs[1].node == ""
    assert [job.number for job in jobs if job.is_over] == ["1", "6"], "a job that is completing may still run"


def test_nodes_are_read_with_their_partitions_and_features():
    nodes = slurm.read_nodes(NODES)
    assert len(nodes) == 5
    assert nodes[0] == slurm.SlurmNode("c0", "cloud", False, 3, frozenset({"c5.large", "us-east-1a"}))
    assert {node.name for node in nodes if node.is_default} == {"s0", "s1"}


@pytest.mark.parametrize(("text", "number"), [("12\n", "12"), ("12;cluster\n", "12")])
def test_the_number_of_a_job(text, number):
    assert slurm.read_number(text) == number


def test_an_answer_that_is_no_number():
    with pytest.raises(PermanentError, match="instead of a job's number"):
        slurm.read_number("Submitted batch job 12")


# -- with programs that answer as Slurm did ----------------------------------------------------------------------------
@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Put a program in the place of one of Slurm's: what it prints, what it complains of, how it ends."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def answer(program, said="", complaint="", code=0):
        (tmp_path / f"{program}.said").write_text(said)
        path = tmp_path / program
        path.write_text(
            f"#!/bin/sh\nPATH=/usr/bin:/bin\nprintf '%s\\n' \"$@\" > {tmp_path}/{program}.asked\n"
            f"cat {tmp_path}/{program}.said\necho '{complaint}' >&2\nexit {code}\n"
        )
        path.chmod(0o755)
        return tmp_path / f"{program}.asked"

    return answer


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", TransientError),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", TransientError),
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", PermanentError),
        (
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, "
            "user size and/or time limits)",
            slurm.OverLimit,
        ),
    ],
)
def test_what_a_refusal_means(answers, complaint, kind):
    answers("sbatch", complaint=complaint, code=1)
    with pytest.raises(BackendError) as caught:
        slurm.submit("#!/bin/sh\n", name="n", comment="l1", folder="/", partition=None)
    assert type(caught.value) is kind
    assert complaint.rpartition(": ")[2] in str(caught.value)


def test_a_job_holds_one_node_and_is_never_run_again_by_slurm(answers):
    asked = answers("sbatch", "17\n")
    script = "#!/bin/sh\nexec true\n"
    assert slurm.submit(script, name="n", comment="l1", folder="/a b", partition="p", features="x&y") == "17"
    words = asked.read_text().splitlines()
    assert {"--no-requeue", "--nodes=1", "--exclusive", "--chdir=/a b", "--partition=p", "--constraint=x&y"} <= {*words}


def test_cancelling_what_is_over_is_harmless(answers):
    answers("scancel", complaint="scancel: error: Kill job error on job id 99: Invalid job id specified", code=1)
    slurm.cancel("99")


def test_a_node_that_slurm_resumes_and_suspends(answers):
    answers("scontrol", CLOUD_NODE)
    assert slurm.is_cloud("c0")
    answers("scontrol", CLOUD_NODE.replace("+CLOUD", ""))
    assert not slurm.is_cloud("c0")


# -- before anything is begun ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("place", ["slurm:", "slurm:a b", "slurm:a,b", "slurm:a/b"])
def test_a_partition_that_is_none(place):
    with pytest.raises(SpecError, match="names no partition"):
        slurm_partition(place)


def test_the_default_partition_or_the_one_that_is_named(answers):
    answers("sinfo", NODES)
    assert look_around("slurm") == SlurmCluster(2, 8, frozenset({"big"}))
    assert look_around("slurm:cloud") == SlurmCluster(2, 3, frozenset({"c5.large", "us-east-1a"}))
    with pytest.raises(SpecError, match="no partition 'clod'") as caught:
        look_around("slurm:clod")
    assert "cloud" in caught.value.hint


def test_slurm_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermanentError, match="there is no sinfo here") as caught:
        look_around("slurm")
    assert "login node" in caught.value.hint


def test_slurmctld_does_not_answer(answers):
    answers("sinfo", complaint="slurm_load_partitions: Unable to contact slurm controller (connect failure)", code=1)
    with pytest.raises(PermanentError, match=r"Slurm does not answer: .*connect failure") as caught:
        look_around("slurm")
    assert "scontrol ping" in caught.value.hint


def test_a_program_that_hangs(answers, monkeypatch, tmp_path):
    answers("sinfo")
    (tmp_path / "sinfo").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(slurm, "_PATIENCE_S", 0.2)
    with pytest.raises(TransientError, match="sinfo took more than"):
        slurm.nodes()


def test_variables_that_change_what_is_shown_are_kept_out(answers, monkeypatch, tmp_path):
    answers("squeue")
    (tmp_path / "squeue").write_text('#!/bin/sh\necho "7|${SQUEUE_STATES-RUNNING}|s0|$LC_ALL"\n')
    monkeypatch.setitem(os.environ, "SQUEUE_STATES", "PENDING")
    assert slurm.jobs("n") == [slurm.SlurmJob("7", "RUNNING", "s0", "C")]
