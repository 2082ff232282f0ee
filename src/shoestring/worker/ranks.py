"""The rank of a worker in its gang, in the environment variables that `torch.distributed` reads."""

from __future__ import annotations

from shoestring.worker.task import Task


def rank_variables(task: Task, rank: int) -> dict[str, str]:
    """What a launcher like torchrun would set, for a lone worker too: RANK=0 of WORLD_SIZE=1.

    Not for a lone worker with several slots: libraries that find these variables assume one process per slot, and would
    leave all slots but one idle, or wait for processes that are never started.
    """
    if task.world_size == 1 and task.slots > 1:
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


def free_port() -> int:
    """A free port. A new one for each segment, so that two attempts at a trial never connect to each other."""
    import socket  # saves workers a millisecond: usually only the backend calls this

    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
