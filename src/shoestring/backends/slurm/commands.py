"""The Slurm commands and the parsers of their output: every call of a Slurm command is made here.

Arguments are passed as lists, never through a shell. Every call has a timeout: a slurmctld that is down or busy must
not block our controller. Output formats are set explicitly, with `|` between the fields.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from shoestring.backends.hosted_machines import OverLimit
from shoestring.errors import BackendError, PermanentError, TransientError

_TIMEOUT_S = 20.0
_JOBS = "jobid:20|,state:20|,nodelist:2000|,lastschedeval:20|,comment:2000"
"""Widths, which `squeue` fills with blanks: it cuts off what is longer. A job got its node when it was last considered
by the scheduler; its start time is a later one once a node was resumed for it."""
_NODES = "%N|%P|%c|%f"
_FAILED = ("BOOT_FAIL", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT")
_OVER = ("COMPLETED", "CANCELLED", *_FAILED)
_SILENT = re.compile(
    "contact slurm controller|timed out|connect|zero bytes|not responding|temporarily|too busy|try again|"
    "protocol authentication",
    re.IGNORECASE,
)
_LIMITED = re.compile("policy|limit|quota|too many", re.IGNORECASE)
_IGNORED = ("SQUEUE_", "SINFO_", "SCANCEL_")
"""Environment variables that change what these commands show or do; those of `sbatch` are the user's to set."""


class SlurmJob(NamedTuple):
    number: str
    state: str
    node: str
    started_at: float | None
    """Wall time at which it got its node: one that has to be resumed costs money from then on."""
    comment: str

    @property
    def leases(self) -> tuple[str, ...]:
        """Its comment names them."""
        return tuple(self.comment.split(","))

    @property
    def nodes(self) -> tuple[str, ...]:
        return read_host_list(self.node)

    @property
    def is_over(self) -> bool:
        """A job that is `COMPLETING` is not over: some of its processes may still run."""
        return self.state in _OVER


class SlurmNode(NamedTuple):
    name: str
    partition: str
    is_default: bool
    """Is this the default partition?"""
    cpus: int
    features: frozenset[str]


# -- orders ------------------------------------------------------------------------------------------------------------
def submit(
    script: str, *, name: str, comment: str, folder: str, partition: str | None, features: str = "", nodes: int = 1
) -> str:
    """Submit a job that holds whole nodes, which it does not lose with one of them, and that Slurm never requeues.
    Returns its number."""
    options = ["--parsable", "--no-requeue", f"--nodes={nodes}", "--exclusive", "--mem=0"]
    options += ["--ntasks=1"] if nodes == 1 else ["--ntasks-per-node=1", "--no-kill"]
    options += [
        f"--job-name={name}",
        f"--comment={comment}",
        f"--chdir={folder}",
        "--output=log.txt",
        "--open-mode=append",
    ]
    options += [f"--partition={partition}"] if partition else []
    options += [f"--constraint={features}"] if features else []
    return read_number(_call("sbatch", *options, stdin=script))


def cancel(number: str) -> None:
    """Harmless if the job is over."""
    try:
        _call("scancel", number)
    except PermanentError as error:
        if "Invalid job id" not in str(error):
            raise


def shrink(number: str, nodes: Sequence[str]) -> None:
    """Give back all nodes of a running job but these. Slurm refuses for the node that runs its script."""
    _call("scontrol", "update", f"jobid={number}", f"nodelist={','.join(nodes)}")


def power_down(node: str) -> None:
    """Suspend a node as soon as no job is on it."""
    _call("scontrol", "update", f"nodename={node}", "state=power_down")


# -- queries -----------------------------------------------------------------------------------------------------------
def jobs(name: str) -> list[SlurmJob]:
    """All jobs of this name, including those that ended in the last minutes."""
    return read_jobs(_call("squeue", "--noheader", "--states=all", f"--name={name}", f"--Format={_JOBS}"))


def nodes() -> list[SlurmNode]:
    """All configured nodes, up or not: a node that is down today may be up tomorrow."""
    return read_nodes(_call("sinfo", "--noheader", "--Node", f"--format={_NODES}"))


def is_cloud(node: str) -> bool:
    """Is this a node that Slurm resumes and suspends?"""
    found = re.search(r"\bState=(\S+)", _call("scontrol", "--oneliner", "show", "node", node))
    return found is not None and "CLOUD" in re.split(r"\W", found[1])


# -- parsers -----------------------------------------------------------------------------------------------------------
def read_number(text: str) -> str:
    """The output of `sbatch --parsable`: the number, and the name of the cluster if there are several."""
    number = text.strip().partition(";")[0]
    if not number.isdigit():
        raise PermanentError(f"sbatch answered {text.strip()[:80]!r} instead of a job's number")
    return number


def read_jobs(text: str) -> list[SlurmJob]:
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|", 4)]
        if len(fields) == 5 and fields[0].isdigit():
            number, state, node, started, comment = fields
            found.append(SlurmJob(number, state, node, _wall(started) if node else None, comment))
    return found


def _wall(moment: str) -> float | None:
    """Slurm prints local time. Of a job that waits it is an estimate, or N/A."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return None


def read_host_list(text: str) -> tuple[str, ...]:
    """Slurm's short form of a list of nodes, `s[0-2,7],c1`, in full."""
    found: list[str] = []
    for word in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        names = [""]
        for plain, numbers in re.findall(r"([^\[]+)|\[([^\]]*)\]", word):
            names = [name + part for name in names for part in ([plain] if plain else _numbers(numbers))]
        found += names
    return tuple(found)


def _numbers(text: str) -> list[str]:
    """`08-11,20`: with the leading zeros of the first."""
    found: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last or first) + 1)]
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


def _call(program: str, *arguments: str, stdin: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_IGNORED)}
    try:
        done = subprocess.run(
            [program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            env={**environment, "LC_ALL": "C"},
            check=False,
        )
    except FileNotFoundError as error:
        raise PermanentError(
            f"there is no {program} here, so Slurm cannot be used",
            hint="start the run where Slurm's commands are installed, for instance on a login node",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise TransientError(f"Slurm does not answer: {program} took more than {_TIMEOUT_S:.0f} s") from error
    if done.returncode == 0:
        return done.stdout
    raise _refusal(program, done.stderr)


def _refusal(program: str, output: str) -> BackendError:
    lines = output.strip().splitlines()
    reason = lines[-1].removeprefix(f"{program}: ").removeprefix("error: ") if lines else "it printed nothing"
    if _SILENT.search(reason):
        return TransientError(f"Slurm does not answer: {reason}")
    if program == "sbatch" and _LIMITED.search(reason):
        return OverLimit(f"Slurm refuses more jobs for now: {reason}")
    return PermanentError(f"Slurm refuses ({program}): {reason}")
