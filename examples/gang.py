"""Train one model with several processes: each computes a share of every batch, and they sum their gradients.

    shoestring run examples/gang.py

A promoted trial gets more slots, and with them more workers. It resumes from its checkpoint, and its result does not
depend on the number of workers. `Gang` is an all-reduce in twenty lines that a library such as torch.distributed would
replace: the workers find each other by the same environment variables.
"""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import shoestring as ss

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core per worker


class Gang:
    """The workers of a trial. Rank 0 accepts connections, sums what the others send, and sends the sum back."""

    def __init__(self, trial: ss.Trial) -> None:
        self.rank, self.size = trial.rank, trial.world_size
        self.others: list[Connection] = []
        if self.size > 1:
            address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            self.others = self.accept_others(address) if self.rank == 0 else [self.connect(address)]

    def accept_others(self, address: tuple[str, int]) -> list[Connection]:
        with Listener(address, backlog=self.size) as listener:
            others = [listener.accept() for _ in range(self.size - 1)]
        return sorted(others, key=lambda other: int(other.recv_bytes()))  # sums of floats depend on the order

    def connect(self, address: tuple[str, int]) -> Connection:
        while True:
            try:
                rank_0 = Client(address)
            except ConnectionRefusedError:
                time.sleep(0.01)  # rank 0 is not listening yet
            else:
                rank_0.send_bytes(b"%d" % self.rank)
                return rank_0

    def sum(self, array: Any) -> Any:
        import numpy as np

        if self.rank > 0:
            self.others[0].send_bytes(array.tobytes())
            return np.frombuffer(self.others[0].recv_bytes())
        for other in self.others:
            array = array + np.frombuffer(other.recv_bytes())
        for other in self.others:
            other.send_bytes(array.tobytes())
        return array


def train(trial: ss.Trial) -> None:
    """Fit a noisy surface with random Fourier features."""
    import numpy as np

    gang = Gang(trial)
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (8192, 2))
    heights = np.sin(5 * points[:, 0]) * np.cos(3 * points[:, 1]) + rng.normal(0, 0.05, 8192)
    waves = np.cos(points @ rng.normal(0, trial["frequency"], (2, 128)) + rng.uniform(0, 2 * np.pi, 128))
    weights = np.load(trial.checkpoint / "weights.npy") if trial.checkpoint else np.zeros(128)
    for step in trial.steps():
        order = np.random.default_rng(step).permutation(8192)  # the same for every worker
        for batch in np.array_split(order, 8):
            mine = batch[gang.rank :: gang.size]
            gradient = waves[mine].T @ (waves[mine] @ weights - heights[mine]) / len(batch)
            weights = weights - trial["lr"] * gang.sum(gradient)
        trial.report(loss=float(np.mean((waves @ weights - heights) ** 2)))  # only the report of rank 0 counts
        with trial.save() as folder:  # only rank 0 gets a folder
            if folder:
                np.save(folder / "weights.npy", weights)


if __name__ == "__main__":
    study = ss.tune(
        train,
        name="gang",
        space={"lr": ss.log(1e-3, 3e-2), "frequency": ss.log(0.3, 10.0)},
        minimize="loss",
        trials=16,
        max_steps=2000,
        recipe="elastic_successive_halving",
        market={"kind": "modern", "slots": 2, "speedup": 180},
        max_machines=2,
        budget=0.05,
        deadline="45m",
    )
    print(study.best)
