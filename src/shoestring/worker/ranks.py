"""The place of a program in its gang, in environment variables.

A worker finds its rank in those that `torch.distributed` reads. A program that is launched once for the whole gang, and
starts its own processes on its machines as mpirun does, finds these machines in SHOESTRING_HOSTS (`s0:2,s1:2`) and in
the file SHOESTRING_HOSTFILE, with a line for every process: the form that all launchers read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from shoestring.worker.task import Host, Task

HOSTFILE = "hosts.txt"


def rank_variables(task: Task, rank: int) -> dict[str, str]:
    """What a launcher like torchrun would set, for a lone worker too: RANK=0 of WORLD_SIZE=1.

    Not for a lone worker with several slots: libraries that find these variables assume one process per slot, and would
    leave all slots but one idle, or wait for processes that are never started. Nor for a program that is launched once:
    what it starts has ranks of its own.
    """
    if task.hosts or (task.world_size == 1 and task.slots > 1):
        return {}
    local_rank, local_world_size = _on_its_machine(task, rank)
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(task.world_size),
        "LOCAL_WORLD_SIZE": str(local_world_size),
        "MASTER_ADDR": task.master_addr,
        "MASTER_PORT": str(task.master_port),
    }


def _on_its_machine(task: Task, rank: int) -> tuple[int, int]:
    place = rank - task.first_rank
    for workers in task.machines or (task.workers,):
        if place < workers:
            return place, workers
        place -= workers
    raise ValueError(f"rank {rank} is on none of the machines of {task.segment}")


def launch_variables(machines: Collection[Host], folder: Path) -> dict[str, str]:
    """Of a program that is launched once on these machines; writes the file of hosts. None for other programs."""
    if not machines:
        return {}
    hosts = _merged(machines)
    (folder / HOSTFILE).write_text("".join(f"{host.name}\n" * host.slots for host in hosts))
    return {
        "SHOESTRING_HOSTS": ",".join(f"{host.name}:{host.slots}" for host in hosts),
        "SHOESTRING_HOSTFILE": str(folder / HOSTFILE),
    }


def _merged(hosts: Iterable[Host]) -> tuple[Host, ...]:
    """Machines of the same name are one, with the slots of all."""
    slots: dict[tuple[str, str], int] = {}
    for host in hosts:
        slots[host.name, host.job] = slots.get((host.name, host.job), 0) + host.slots
    return tuple(Host(name=name, slots=count, job=job) for (name, job), count in slots.items())


def unreachable(task: Task) -> str:
    """Why its launcher cannot reach all machines; "" if it can."""
    jobs = sorted({host.job for host in task.hosts})
    if len(jobs) <= 1:
        return ""
    return f"launch: once needs all of its machines in one allocation, and they are in several: {', '.join(jobs)}"


def free_port() -> int:
    """A free port. A new one for each segment, so that two attempts at a trial never connect to each other."""
    import socket  # saves workers a millisecond: usually only the backend calls this

    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
