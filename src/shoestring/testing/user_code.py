"""Training functions for testing backends: tiny, without any library, each with one habit."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import TextIO

from shoestring.trial import Trial


def train(trial: Trial) -> None:
    """Well behaved: goes on from its checkpoint, reports, saves. The loss tells how many steps were really trained."""
    trained = int((trial.checkpoint / "trained").read_text()) if trial.checkpoint else 0
    for _ in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trained += 1
        trial.report(loss=1.0 / trained, trained=trained)
        with trial.save() as folder:
            if folder:
                (folder / "trained").write_text(str(trained))


def sampled(trial: Trial) -> None:
    """Trains on its share of 100 samples. The loss tells which those are; smaller parts are told of on the way."""
    for part in trial.fractions:
        trial.report(loss=_told_apart(trial, part), fraction=part)
    for _ in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trial.report(loss=_told_apart(trial, trial.fraction), fraction=trial.fraction)
        with trial.save() as folder:
            if folder:
                (folder / "state").touch()


def _told_apart(trial: Trial, fraction: float) -> float:
    """A number for a set of samples, and hardly another's."""
    return float(sum(index**2 for index in trial.subsample(100, fraction).tolist()))


def forgetful(trial: Trial) -> None:
    """Never saves."""
    for step in trial.steps():
        time.sleep(float(str(trial.get("step_s", 0.0))))
        trial.report(loss=1.0 / step)


def hung(trial: Trial) -> None:
    """Reports one step, then never comes back, and leaves a child behind that would outlive it."""
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
    """Reports, but not what the study is about."""
    for _ in trial.steps():
        trial.report(accuracy=0.5)


def plain(trial: Trial) -> None:
    """Knows nothing of steps."""
    assert trial.id


def together(trial: Trial) -> None:
    """Fits a line to points, of which each worker of a gang sees its share; their gradients are averaged. The loss is
    that of one worker who sees all the points, and a checkpoint says nothing of how many there were."""
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
    """Tells what each worker of a gang finds in its environment."""
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    assert (trial.rank, trial.world_size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    workers = Workers(trial)
    for _ in trial.steps():
        found: dict[str, float] = {}
        for rank in range(workers.world_size):
            mine = [float(os.environ[name]) if workers.rank == rank else 0.0 for name in names]
            said = [workers.world_size * number for number in workers.mean(mine)]
            found |= {f"{name}_{rank}": number for name, number in zip(names, said, strict=True)}
        trial.report(step=None, loss=0.0, slots=trial.slots, **found)


def gang_with_a_failure(trial: Trial) -> None:
    """In the second step the last worker raises, is killed or returns, as it is told; the others never come back."""
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
    """The workers of a gang, who meet at the address in their environment: rank 0 lets the others in and does sums."""

    def __init__(self, trial: Trial) -> None:
        self.rank, self.world_size = trial.rank, trial.world_size
        self._lines: list[TextIO] = []
        if self.world_size == 1:
            return
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if self.rank:
            self._lines = [_knock(host, port)]
            print(self.rank, file=self._lines[0], flush=True)
        else:
            self._lines = _let_in(port, self.world_size - 1)
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


def _let_in(port: int, others: int) -> list[TextIO]:
    with socket.create_server(("", port)) as door:
        return [door.accept()[0].makefile("rw") for _ in range(others)]


def _knock(host: str, port: int) -> TextIO:
    while True:
        try:
            return socket.create_connection((host, port)).makefile("rw")
        except ConnectionRefusedError:
            time.sleep(0.01)  # rank 0 is not there yet
