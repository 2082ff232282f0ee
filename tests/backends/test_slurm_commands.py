"""Output of Slurm's commands on a real cluster, and how it is parsed."""

import os
from datetime import datetime

import pytest

from shoestring.backends.hosted_machines import OverLimit
from shoestring.backends.registry import Nodes, find_place
from shoestring.backends.slurm import commands as slurm
from shoestring.errors import BackendError, PermanentError, SpecError, TransientError

JOBS = """\
5|RUNNING|c0|2026-11-16T06:45:08|l8
7|PENDING||2026-11-16T09:00:00|l11
1|CANCELLED|s0|2026-11-16T06:40:00|l7
6|NODE_FAIL|s0|2026-11-16T06:41:00|l9
9|COMPLETING|s1|2026-11-16T06:42:00|l12
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


def test_jobs_are_parsed_and_other_lines_are_skipped():
    jobs = slurm.read_jobs(JOBS)
    started_at = datetime(2026, 11, 16, 6, 45, 8).timestamp()
    assert jobs[0] == slurm.SlurmJob("5", "RUNNING", "c0", started_at, "l8")
    assert (jobs[1].node, jobs[1].started_at) == ("", None), "of a job that waits, Slurm shows a guess"
    assert [job.number for job in jobs if job.is_over] == ["1", "6"], "a job that is completing may still run"


def test_nodes_are_parsed_with_their_partitions_and_features():
    nodes = slurm.read_nodes(NODES)
    assert len(nodes) == 5
    assert nodes[0] == slurm.SlurmNode("c0", "cloud", False, 3, frozenset({"c5.large", "us-east-1a"}))
    assert {node.name for node in nodes if node.is_default} == {"s0", "s1"}


@pytest.mark.parametrize(("text", "number"), [("12\n", "12"), ("12;cluster\n", "12")])
def test_the_number_of_a_job(text, number):
    assert slurm.read_number(text) == number


def test_an_output_without_a_job_number_is_an_error():
    with pytest.raises(PermanentError, match="instead of a job's number"):
        slurm.read_number("Submitted batch job 12")


# -- with programs that print what Slurm printed -----------------------------------------------------------------------
@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Replace one of Slurm's programs: what it prints, its error message, its exit code."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def answer(program, output="", error="", code=0):
        (tmp_path / f"{program}.output").write_text(output)
        path = tmp_path / program
        path.write_text(
            f"#!/bin/sh\nPATH=/usr/bin:/bin\nprintf '%s\\n' \"$@\" > {tmp_path}/{program}.arguments\n"
            f"cat {tmp_path}/{program}.output\necho '{error}' >&2\nexit {code}\n"
        )
        path.chmod(0o755)
        return tmp_path / f"{program}.arguments"

    return answer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", TransientError),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", TransientError),
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", PermanentError),
        (
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, "
            "user size and/or time limits)",
            OverLimit,
        ),
    ],
)
def test_error_messages_are_classified(answers, error, kind):
    answers("sbatch", error=error, code=1)
    with pytest.raises(BackendError) as caught:
        slurm.submit("#!/bin/sh\n", name="n", comment="l1", folder="/", partition=None)
    assert type(caught.value) is kind
    assert error.rpartition(": ")[2] in str(caught.value)


def test_a_job_holds_one_node_and_is_never_requeued(answers):
    arguments = answers("sbatch", "17\n")
    script = "#!/bin/sh\nexec true\n"
    assert slurm.submit(script, name="n", comment="l1", folder="/a b", partition="p", features="x&y") == "17"
    words = arguments.read_text().splitlines()
    assert {"--no-requeue", "--nodes=1", "--exclusive", "--chdir=/a b", "--partition=p", "--constraint=x&y"} <= {*words}


def test_cancelling_an_ended_job_is_harmless(answers):
    answers("scancel", error="scancel: error: Kill job error on job id 99: Invalid job id specified", code=1)
    slurm.cancel("99")


def test_a_node_that_slurm_resumes_and_suspends(answers):
    answers("scontrol", CLOUD_NODE)
    assert slurm.is_cloud("c0")
    answers("scontrol", CLOUD_NODE.replace("+CLOUD", ""))
    assert not slurm.is_cloud("c0")


# -- checks before a run starts ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("place", ["slurm:", "slurm:a b", "slurm:a,b", "slurm:a/b"])
def test_an_invalid_partition_name_is_refused(place):
    with pytest.raises(SpecError, match="names no partition"):
        find_place(place)


def test_the_default_or_the_named_partition_is_used(answers):
    answers("sinfo", NODES)
    assert find_place("slurm").check()[:2] == (2, 8)
    assert find_place("slurm:cloud").check()[:2] == (2, 3)
    with pytest.raises(SpecError, match="no partition 'clod'") as caught:
        find_place("slurm:clod").check()
    assert "cloud" in caught.value.hint


def test_nodes_are_known_by_their_features_and_without_a_named_partition_by_any_partition(answers):
    answers("sinfo", NODES)
    every = find_place("slurm").check().labels
    assert every == {"big": Nodes(1, 8), "steady": Nodes(2, 8), "all": Nodes(1, 8), "cloud": Nodes(2, 3)}
    of_cloud = find_place("slurm:cloud").check().labels
    assert of_cloud == {"c5.large": Nodes(1, 3), "us-east-1a": Nodes(1, 3), "cloud": Nodes(2, 3)}


def test_slurm_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermanentError, match="there is no sinfo here") as caught:
        find_place("slurm").check()
    assert "login node" in caught.value.hint


def test_slurmctld_does_not_answer(answers):
    answers("sinfo", error="slurm_load_partitions: Unable to contact slurm controller (connect failure)", code=1)
    with pytest.raises(PermanentError, match=r"Slurm does not answer: .*connect failure") as caught:
        find_place("slurm").check()
    assert "scontrol ping" in caught.value.hint


def test_a_command_that_hangs_times_out(answers, monkeypatch, tmp_path):
    answers("sinfo")
    (tmp_path / "sinfo").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(slurm, "_TIMEOUT_S", 0.2)
    with pytest.raises(TransientError, match="sinfo took more than"):
        slurm.nodes()


def test_environment_variables_that_change_the_output_are_removed(answers, monkeypatch, tmp_path):
    answers("squeue")
    (tmp_path / "squeue").write_text('#!/bin/sh\necho "7|${SQUEUE_STATES-RUNNING}|s0|N/A|$LC_ALL"\n')
    monkeypatch.setitem(os.environ, "SQUEUE_STATES", "PENDING")
    assert slurm.jobs("n") == [slurm.SlurmJob("7", "RUNNING", "s0", None, "C")]


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("", ()),
        ("s0", ("s0",)),
        ("s[0-2,7],c1", ("s0", "s1", "s2", "s7", "c1")),
        ("n[08-10]-ib", ("n08-ib", "n09-ib", "n10-ib")),
    ],
)
def test_a_list_of_nodes_is_read_in_full(short, full):
    assert slurm.read_host_list(short) == full


def test_a_job_of_a_gang_names_all_of_its_leases():
    (job,) = slurm.read_jobs("5|RUNNING|s[0-1]|2026-11-16T06:45:08|l8,l9\n")
    assert (job.leases, job.nodes) == (("l8", "l9"), ("s0", "s1"))
