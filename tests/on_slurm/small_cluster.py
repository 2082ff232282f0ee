"""SmallCluster: a real Slurm on this machine, installed if needed, in a folder of its own, ended with all it started.

Several `slurmd -N name` on one machine are several nodes. Everything (keys, sockets, ports, logs) is private, so that
neither an installed Slurm nor an earlier run of the tests interferes.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from shoestring.worker.ranks import free_port
from tests.docs.markdown import ROOT, blocks
from tests.on_slurm.accounts import Accounts

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "scontrol")
PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")

CONF = """
ClusterName=small
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=2,batch_sched_delay=0,sched_min_interval=0
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=2
ReturnToService=2
JobRequeue=1
SlurmdParameters=config_overrides
JobCompType=jobcomp/script
JobCompLoc={folder}/jobcomp
PrivateData=cloud
SuspendTime=3600
SuspendTimeout=5
ResumeTimeout=60
SuspendProgram={folder}/suspend
ResumeProgram={folder}/resume
{nodes}
PartitionName=steady Nodes={steady} Default=YES State=UP
PartitionName=cloud Nodes={cloud} State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} State={state}"
RESUME = """#!/bin/sh
# Slurm gives it neither a PATH nor open files.
for node in $(/usr/bin/scontrol show hostnames "$1"); do
    echo "resume $node $(/bin/date +%s.%N)" >> {folder}/power.log
    /usr/sbin/slurmd -b -N "$node" -f {folder}/slurm.conf </dev/null >/dev/null 2>&1
done
"""
SUSPEND = """#!/bin/sh
for node in $(/usr/bin/scontrol show hostnames "$1"); do
    echo "suspend $node $(/bin/date +%s.%N)" >> {folder}/power.log
    /bin/kill -9 "$(/bin/cat {folder}/slurmd-$node.pid)"
    /bin/rm -f {folder}/slurmd-$node.pid
done
"""


def install(programs: Sequence[str] = PROGRAMS, packages: Sequence[str] = PACKAGES, what: str = "Slurm") -> None:
    """With apt, if it is missing; skips the tests where that is not possible."""
    if os.geteuid() != 0:
        pytest.skip("a Slurm for tests is started by root")
    if all(map(shutil.which, programs)):
        return
    if shutil.which("apt-get") is None:
        pytest.skip(f"{what} is not installed, and there is no apt-get to install it")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True, check=False)
    if done.returncode or not all(map(shutil.which, programs)):
        pytest.skip(f"{what} cannot be installed here: {done.stderr.strip()[-200:]}")


class SmallCluster:
    def __init__(
        self, folder: Path, *, steady: int = 3, cloud: int = 2, cpus: int = 3, accounts: Accounts | None = None
    ) -> None:
        self.folder = folder
        self.accounts = accounts
        self.conf = folder / "slurm.conf"
        self.steady = [f"s{number}" for number in range(steady)]
        self.cloud = [f"c{number}" for number in range(cloud)]
        self._started: list[subprocess.Popen] = []
        self._nodes: dict[str, subprocess.Popen] = {}
        host = os.uname().nodename.partition(".")[0]
        nodes = [
            NODE.format(name=name, host=host, port=free_port(), cpus=cpus, state=state)
            for names, state in ((self.steady, "UNKNOWN"), (self.cloud, "CLOUD"))
            for name in names
        ]
        self.conf.write_text(
            CONF.format(
                host=host,
                port=free_port(),
                folder=folder,
                nodes="\n".join(nodes),
                steady=",".join(self.steady),
                cloud=",".join(self.cloud),
            )
            + ("" if accounts is None else accounts.settings)
        )
        _program(folder / "resume", RESUME.format(folder=folder))
        _program(folder / "suspend", SUSPEND.format(folder=folder))
        _program(folder / "jobcomp", next(b.text for b in blocks(ROOT / "docs" / "slurm.md") if b.file == "jobcomp"))
        (folder / "state").mkdir()
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        try:
            self._munge()
            if accounts is not None:
                accounts.start(self.environment)
            self.start_controller()
            for name in self.steady:
                self.start_node(name)
        except BaseException:
            self.end()
            raise

    # -- its processes -------------------------------------------------------------------------------------------------
    def _munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [f"--{what}-file={self.folder / f'munge.{what}'}" for what in ("key", "pid", "seed", "log")]
        self._run("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", *files)
        wait_until(lambda: (self.folder / "munge.socket").exists(), "munged does not come up")

    def start_controller(self) -> None:
        self._controller = self._run("slurmctld", "-D", "-f", str(self.conf))
        wait_until(
            lambda: self.query("scontrol", "ping", strict=False).startswith("Slurmctld(primary)"), "no slurmctld"
        )
        wait_until(lambda: "is UP" in self.query("scontrol", "ping", strict=False), "slurmctld does not come up")

    def stop_controller(self, how: int = signal.SIGTERM) -> None:
        """Cleanly, or killed: it then forgets the last seconds."""
        self._controller.send_signal(how)
        self._controller.wait()

    def start_node(self, name: str) -> None:
        self._nodes[name] = self._run("slurmd", "-D", "-N", name, "-f", str(self.conf))
        wait_until(lambda: self.state(name) in ("idle", "allocated", "mixed"), f"{name} does not come up")

    def kill_node(self, name: str, *, mark_down: bool = True) -> None:
        """Like a lost machine: all processes at once. `mark_down`: as a cloud's tools would; else Slurm finds out."""
        for pid in self.processes_on(name):
            _kill(pid)
        if name in self._nodes:
            self._nodes.pop(name).wait()
        if mark_down:
            self.query("scontrol", "update", f"nodename={name}", "state=down", "reason=preempted")

    def replace_node(self, name: str) -> None:
        """Another machine in place of a node that was killed; of a cloud node when Slurm resumes it the next time."""
        if name in self.steady:
            self._nodes[name] = self._run("slurmd", "-D", "-N", name, "-f", str(self.conf))
            return
        for state in ("power_down_force", "resume"):
            self.query("scontrol", "update", f"nodename={name}", f"state={state}", strict=False)

    def _run(self, *command: str) -> subprocess.Popen:
        with (self.folder / f"{command[0]}.out").open("ab") as log:
            process = subprocess.Popen(
                [shutil.which(command[0]), *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "SLURM_CONF": str(self.conf)},
            )
        self._started.append(process)
        return process

    # -- queries -------------------------------------------------------------------------------------------------------
    def query(self, *command: str, strict: bool = True) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0 or not strict, done.stderr
        return done.stdout

    def state(self, node: str) -> str:
        return (
            self.query("sinfo", "--noheader", f"--nodes={node}", "--format=%T", strict=False).partition("\n")[0].strip()
        )

    def jobs(self) -> list[str]:
        """All running, pending and completing jobs."""
        return self.query("squeue", "--noheader", "--format=%i %j %T %k %N").splitlines()

    def processes_on(self, node: str) -> list[int]:
        """slurmd and the slurmstepds of its jobs, which share a log, and all that they started."""
        log = str(self.folder / f"slurmd-{node}.log")
        marks = {f"SLURM_CONF={self.conf}".encode(), f"SLURMD_NODENAME={node}".encode()}
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                started = marks <= set((place / "environ").read_bytes().split(b"\0"))
                if started or log in map(os.readlink, (place / "fd").iterdir()):
                    found.append(int(place.name))
            except OSError:
                continue  # it has just ended
        return sorted(found)

    def power(self) -> set[str]:
        """Which nodes were resumed and suspended so far."""
        return {f"{what} {node}" for what, node, _ in self.power_log()}

    def power_log(self) -> list[tuple[str, str, float]]:
        """Each time a node was resumed or suspended: which, and when."""
        path = self.folder / "power.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(what, node, float(at)) for what, node, at in map(str.split, lines)]

    # -- the end -------------------------------------------------------------------------------------------------------
    def end(self) -> None:
        for name in (*self.steady, *self.cloud):
            for pid in self.processes_on(name):
                _kill(pid)
        for process in reversed(self._started):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        if self.accounts is not None:
            self.accounts.end()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def wait_until(ready, error: str = "timed out", seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, error
        time.sleep(0.05)
