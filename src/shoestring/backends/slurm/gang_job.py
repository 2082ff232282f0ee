"""A Slurm job of several nodes, one for each lease of a gang: its script, its hosts, and what its programs see.

The script starts a host on every node, each as a step of its own (`srun`), which shares the node with the steps that
the gang's program starts (`--overlap`). With `--no-kill` the job outlives its nodes, also the one that runs the script:
the other hosts go on. So a host that is the last one of its job ends the job.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from shoestring.backends.slurm import commands as slurm
from shoestring.errors import BackendError
from shoestring.host.host import LeaseHost, sign_in
from shoestring.host.messages import ALIVE, HOSTING, LEFT
from shoestring.worker.task import LOG, Host

_SILENCE_S = 60.0
_OF_A_STEP = (
    *("SLURM_STEP", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASK", "SLURM_DISTRIBUTION", "SLURM_CPU_BIND"),
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_SRUN_COMM", "SLURM_LAUNCH_NODE"),
    *("SLURM_TOPOLOGY", "SLURM_UMASK", "SLURM_PRIO_PROCESS", "SLURM_CPUS_ON_NODE", "PMI_", "PMI2_", "PMIX_"),
)
"""Variables that `srun` sets for what it starts, by their beginnings. An `srun` in it would take them for options."""


def script_of(folders: Sequence[Path]) -> str:
    """Start the host of each of these leases on a node of its own."""
    hosts = shlex.join(map(str, folders))
    step = "srun --overlap --nodes=1 --ntasks=1 --nodelist"
    host = shlex.join([sys.executable, "-P", "-m", "shoestring.backends.slurm.gang_job"])
    return f"""#!/bin/sh
set -- {hosts}
for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    {step} "$node" --output=none {host} "$1" "$SLURM_JOB_ID" "$node" {hosts} &
    shift
done
wait
"""


def variables_of(hosts: Sequence[Host]) -> dict[str, str]:
    """What Slurm tells the script of a job with these nodes and as many tasks: `srun` and mpirun start one for each
    slot, on all of them."""
    nodes = ",".join(host.name for host in hosts)
    each = ",".join(str(host.slots) for host in hosts)
    tasks, count = str(sum(host.slots for host in hosts)), str(len(hosts))
    return {
        **dict.fromkeys(("SLURM_JOB_NODELIST", "SLURM_NODELIST"), nodes),
        **dict.fromkeys(("SLURM_JOB_NUM_NODES", "SLURM_NNODES"), count),
        **dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), tasks),
        **dict.fromkeys(("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"), each),
    }


def main() -> None:
    """`python -m shoestring.backends.slurm.gang_job FOLDER JOB NODE FOLDERS...`: host the lease of this folder, which
    shares its job with the others."""
    folder, job, node, *folders = sys.argv[1:]
    # What a step prints goes through its srun, which ends with the node of the script.
    with (Path(folder) / LOG).open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    for name in [name for name in os.environ if name.startswith(_OF_A_STEP)]:
        del os.environ[name]
    if sign_in(Path(folder), machine=job, node=node):
        LeaseHost(Path(folder)).run()
    if all(_is_over(Path(folder), Path(other)) for other in folders if other != folder):
        with suppress(BackendError):
            slurm.cancel(job)


def _is_over(mine: Path, other: Path) -> bool:
    """Has the host of another lease left, or died? Heartbeats are compared on the clock of the file system."""
    if (other / LEFT).exists() or not (other / HOSTING).exists():
        return True
    with suppress(OSError):
        os.utime(mine / ALIVE)
        return os.stat(mine / ALIVE).st_mtime - os.stat(other / ALIVE).st_mtime > _SILENCE_S
    return False


if __name__ == "__main__":
    main()
