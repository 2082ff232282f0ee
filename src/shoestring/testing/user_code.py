"""Training functions for testing backends: tiny, without any library, each with one behaviour."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import TextIO

from shoestring.trial import Trial


def train(trial: Trial) -> None:
    """Well behaved: resumes from its checkpoint, reports, saves. The loss shows how many steps were really trained."""
    trained = int((trial.checkpoint / "trained").read_text()) if trial.checkpoint else 0
    for _ in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trained += 1
        trial.report(loss=1.0 / trained, trained=trained)
        with trial.save() as folder:
            if folder:
                (folder / "trained").write_text(str(trained))


def five_steps(trial: Trial) -> None:
    """Knows itself when it is done."""
    assert trial.until_step is None
    for step in trial.steps():
        trial.report(loss=1.0 / step)
        with trial.save() as folder:
            if folder:
                (folder / "state").touch()
        if step == 5:
            break


def sampled(trial: Trial) -> None:
    """Trains on its fraction of 100 samples. The loss identifies them; snapshots of smaller fractions come first."""
    for fraction in trial.fractions:
        trial.report(loss=_fingerprint(trial, fraction), fraction=fraction)
    for _ in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trial.report(loss=_fingerprint(trial, trial.fraction), fraction=trial.fraction)
        with trial.save() as folder:
            if folder:
                (folder / "state").touch()


def _fingerprint(trial: Trial, fraction: float) -> float:
    """A number that identifies a set of samples."""
    return float(sum(index**2 for index in trial.subsample(100, fraction).tolist()))


def forgetful(trial: Trial) -> None:
    """Never saves."""
    for step in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trial.report(loss=1.0 / step)


def hung(trial: Trial) -> None:
    """Reports one step, then hangs, with a child process that would outlive it."""
    trial.report(loss=1.0)
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    time.sleep(600)


def broken(trial: Trial) -> None:
    for step in trial.steps():
        trial.report(loss=1.0)
        if step == 2:
            raise ValueError("the loss went through the roof")


def silent(trial: Trial) -> None:
    """Reports, but not the study's metric."""
    for _ in trial.steps():
        trial.report(accuracy=0.5)


def plain(trial: Trial) -> None:
    """Uses no steps."""
    assert trial.id


def together(trial: Trial) -> None:
    """Fits a line to points, of which each worker of a gang has its share; their gradients are averaged. The loss is
    that of one worker with all the points, and a checkpoint does not depend on the number of workers."""
    workers = Workers(trial)
    points = [(x / 4, 3 * x / 4 - 1) for x in range(12)]
    mine = points[workers.rank :: workers.world_size]
    slope, offset = json.loads((trial.checkpoint / "line").read_text()) if trial.checkpoint else (0.0, 0.0)
    for _ in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        errors = [(x, slope * x + offset - y) for x, y in mine]
        square, along, up = workers.mean(
            [sum(e * e for _, e in errors), sum(x * e for x, e in errors), sum(e for _, e in errors)]
        )
        share = len(points) / workers.world_size
        slope, offset = slope - 0.1 * along / share, offset - 0.1 * up / share
        trial.report(loss=square / share, world_size=trial.world_size)
        with trial.save() as folder:
            if folder:
                (folder / "line").write_text(json.dumps([slope, offset]))


def roll_call(trial: Trial) -> None:
    """Reports what each worker of a gang finds in its environment."""
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    assert (trial.rank, trial.world_size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    workers = Workers(trial)
    for _ in trial.steps():
        found: dict[str, float] = {}
        for rank in range(workers.world_size):
            mine = [float(os.environ[name]) if workers.rank == rank else 0.0 for name in names]
            values = [workers.world_size * number for number in workers.mean(mine)]
            found |= {f"{name}_{rank}": number for name, number in zip(names, values, strict=True)}
        trial.report(step=None, loss=0.0, slots=trial.slots, **found)


def gang_with_a_failure(trial: Trial) -> None:
    """In the second step the last worker raises, is killed or returns, as configured; the others hang."""
    workers = Workers(trial)
    for step in trial.steps():
        trial.report(loss=float(step))
        if step < 2:
            workers.mean([1.0])
        elif trial.rank < trial.world_size - 1:
            time.sleep(600 if trial["it"] != "returns" else 0.3)
        elif trial["it"] == "raises":
            raise ValueError("a bad batch")
        elif trial["it"] == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            return


class Workers:
    """The workers of a gang, connected at the address in their environment: rank 0 accepts the others and averages."""

    def __init__(self, trial: Trial) -> None:
        self.rank, self.world_size = trial.rank, trial.world_size
        self._lines: list[TextIO] = []
        if self.world_size == 1:
            return
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if self.rank:
            self._lines = [_connect(host, port)]
            print(self.rank, file=self._lines[0], flush=True)
        else:
            self._lines = _accept(port, self.world_size - 1)
            self._lines.sort(key=lambda line: int(line.readline()))  # sums of floats depend on the order

    def mean(self, numbers: list[float]) -> list[float]:
        if self.rank:
            print(json.dumps(numbers), file=self._lines[0], flush=True)
            answer: list[float] = json.loads(self._lines[0].readline())
            return answer
        all_numbers = [numbers] + [json.loads(line.readline()) for line in self._lines]
        mean = [sum(column) / self.world_size for column in zip(*all_numbers, strict=True)]
        for line in self._lines:
            print(json.dumps(mean), file=line, flush=True)
        return mean


def _accept(port: int, others: int) -> list[TextIO]:
    with socket.create_server(("", port)) as server:
        return [server.accept()[0].makefile("rw") for _ in range(others)]


def _connect(host: str, port: int) -> TextIO:
    while True:
        try:
            return socket.create_connection((host, port)).makefile("rw")
        except ConnectionRefusedError:
            time.sleep(0.01)  # rank 0 does not listen yet
