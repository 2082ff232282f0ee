"""What we say to Slurm and how its answers read: every call of a Slurm command is made here.

Arguments go as lists, never through a shell. Every call has a limit of time: a controller of Slurm that is down or busy
must not take ours with it. Answers are asked for in formats of our own, `|` between the fields.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import NamedTuple

from shoestring.errors import BackendError, PermanentError, TransientError

_PATIENCE_S = 20.0
_JOBS, _NODES = "%i|%T|%N|%k", "%N|%P|%c|%f"
_FAILED = ("BOOT_FAIL", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT")
_OVER = ("COMPLETED", "CANCELLED", *_FAILED)
_SILENT = re.compile(
    "contact slurm controller|timed out|connect|zero bytes|not responding|temporarily|too busy|protocol authentication",
    re.IGNORECASE,
)
_LIMITED = re.compile("policy|limit|quota|too many", re.IGNORECASE)
_LOOKS_ONLY = ("SQUEUE_", "SINFO_", "SCANCEL_")
"""Environment variables that change what these commands show or do; those of `sbatch` are the user's to set."""


class OverLimit(BackendError):
    """Slurm does not let this user have more for now."""


class SlurmJob(NamedTuple):
    number: str
    state: str
    node: str
    comment: str

    @property
    def is_over(self) -> bool:
        """A job that is `COMPLETING` is not: something of it may still run."""
        return self.state in _OVER


class SlurmNode(NamedTuple):
    name: str
    partition: str
    is_default: bool
    """Is this the partition of jobs that name none?"""
    cpus: int
    features: frozenset[str]


# -- orders ------------------------------------------------------------------------------------------------------------
def submit(script: str, *, name: str, comment: str, folder: str, partition: str | None, features: str = "") -> str:
    """A job that holds one whole node, and that Slurm never runs a second time. Its number."""
    options = ["--parsable", "--no-requeue", "--nodes=1", "--ntasks=1", "--exclusive", "--mem=0"]
    options += [
        f"--job-name={name}",
        f"--comment={comment}",
        f"--chdir={folder}",
        "--output=log.txt",
        "--open-mode=append",
    ]
    options += [f"--partition={partition}"] if partition else []
    options += [f"--constraint={features}"] if features else []
    return read_number(_call("sbatch", *options, given=script))


def cancel(number: str) -> None:
    """Harmless if the job is over."""
    try:
        _call("scancel", number)
    except PermanentError as error:
        if "Invalid job id" not in str(error):
            raise


def power_down(node: str) -> None:
    """Suspend a node as soon as no job is on it."""
    _call("scontrol", "update", f"nodename={node}", "state=power_down")


# -- questions ---------------------------------------------------------------------------------------------------------
def jobs(name: str) -> list[SlurmJob]:
    """All jobs of this name, those that ended in the last minutes among them."""
    return read_jobs(_call("squeue", "--noheader", "--states=all", f"--name={name}", f"--format={_JOBS}"))


def nodes() -> list[SlurmNode]:
    """All that are configured, up or not: what is down today may be up tomorrow."""
    return read_nodes(_call("sinfo", "--noheader", "--Node", f"--format={_NODES}"))


def is_cloud(node: str) -> bool:
    """Is this a node that Slurm resumes and suspends?"""
    found = re.search(r"\bState=(\S+)", _call("scontrol", "--oneliner", "show", "node", node))
    return found is not None and "CLOUD" in re.split(r"\W", found[1])


# -- answers -----------------------------------------------------------------------------------------------------------
def read_number(text: str) -> str:
    """Of `sbatch --parsable`: the number, and the name of the cluster where there are several."""
    number = text.strip().partition(";")[0]
    if not number.isdigit():
        raise PermanentError(f"sbatch answered {text.strip()[:80]!r} instead of a job's number")
    return number


def read_jobs(text: str) -> list[SlurmJob]:
    found = []
    for line in text.splitlines():
        fields = line.strip().split("|", 3)
        if len(fields) == 4 and fields[0].isdigit():
            found.append(SlurmJob(*fields))
    return found


def read_nodes(text: str) -> list[SlurmNode]:
    """A node has a line for each partition it is in."""
    found = []
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) != 4 or not fields[2].isdigit():
            continue
        name, partition, cpus, features = fields
        named = frozenset() if features == "(null)" else frozenset(features.split(","))
        found.append(SlurmNode(name, partition.rstrip("*"), partition.endswith("*"), int(cpus), named))
    return found


def _call(program: str, *arguments: str, given: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_LOOKS_ONLY)}
    try:
        done = subprocess.run(
            [program, *arguments],
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            env={**environment, "LC_ALL": "C"},
            check=False,
        )
    except FileNotFoundError as error:
        raise PermanentError(
            f"there is no {program} here, so Slurm cannot be asked for anything",
            hint="start the run where Slurm's commands are installed, for instance on a login node",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise TransientError(f"Slurm does not answer: {program} took more than {_PATIENCE_S:.0f} s") from error
    if done.returncode == 0:
        return done.stdout
    raise _refusal(program, done.stderr)


def _refusal(program: str, words: str) -> BackendError:
    lines = words.strip().splitlines()
    said = lines[-1].removeprefix(f"{program}: ").removeprefix("error: ") if lines else "it said nothing"
    if _SILENT.search(said):
        return TransientError(f"Slurm does not answer: {said}")
    if program == "sbatch" and _LIMITED.search(said):
        return OverLimit(f"Slurm refuses more jobs for now: {said}")
    return PermanentError(f"Slurm refuses ({program}): {said}")
