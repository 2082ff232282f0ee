"""Data-parallel training with numpy: each worker has its share of a batch, gradients are averaged over a socket."""

import os
import socket
import time

import numpy as np


class AllReduce:
    """The workers of a gang connect at the address in the environment, like torch.distributed; rank 0 averages."""

    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if self.rank == 0:
            with socket.create_server(address) as server:
                self._peers = [server.accept()[0] for _ in range(self.size - 1)]
        else:
            self._peers = [_connect(address)]

    def mean(self, array):
        if self.rank:
            self._peers[0].sendall(array.tobytes())
            return _receive(self._peers[0], array)
        total = array + sum(_receive(peer, array) for peer in self._peers)
        for peer in self._peers:
            peer.sendall((total / self.size).tobytes())
        return total / self.size


def train(trial):
    gang = AllReduce()
    rng = np.random.default_rng(5)
    inputs = rng.normal(size=(60, 8))
    targets = inputs @ rng.normal(size=8) + 0.1 * rng.normal(size=60)
    mine, wanted = inputs[gang.rank :: gang.size], targets[gang.rank :: gang.size]
    weights = np.load(trial.checkpoint / "weights.npy") if trial.checkpoint else np.zeros(8)
    for _ in trial.steps():
        time.sleep(trial.get("step_s", 0.0))
        error = mine @ weights - wanted
        gradient = np.append(mine.T @ error, error @ error) / len(error)
        *slope, loss = gang.mean(gradient)
        weights -= trial["lr"] * np.array(slope)
        trial.report(loss=loss, workers=gang.size)
        with trial.save() as folder:
            if folder:
                np.save(folder / "weights.npy", weights)


def _connect(address):
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.02)


def _receive(peer, like):
    size, parts = like.nbytes, b""
    while len(parts) < size:
        part = peer.recv(size - len(parts))
        if not part:
            raise ConnectionError("a worker of the gang is gone")
        parts += part
    return np.frombuffer(parts, like.dtype).reshape(like.shape)
