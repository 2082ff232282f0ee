"""Hyper-parameters, machines and parts of the data in one study: which piece of clothing is it?

    python examples/workloads/trimmed.py

A network of one hidden layer on Fashion-MNIST. `trial.subsample` says which pictures to train on, `trial["machine"]`
where. All "machines" are processes of this computer, so a slow one is played: it sleeps until it has taken as long as
its speed would have it. What is trained is real.
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # trials side by side: one core each is fastest

import numpy as np
from pictures import fashion

import shoestring as ss

GFLOP_PER_S = {"m5.large": 4.0, "m5.xlarge": 6.5, "m5.2xlarge": 10.5}
"""Twice the machine is 1.6 times the speed, and twice the price."""
SPACE = {
    "lr": ss.choice(3e-4, 1e-3, 3e-3, 3e-2),
    "width": ss.choice(16, 64, 192),
    "batch": ss.choice(32, 128),
    "machine": ss.machine_type(*GFLOP_PER_S),
    "spot": ss.on_spot(False),
}
METRIC, MAX_STEPS = "accuracy", 6
FRACTIONS = (1 / 16, 1 / 4, 1)
LIMITS = ("cost <= $0.25", "time <= 90m")
"""Of a run on all pictures. The widest networks keep both on the middle machine only: the small one is too slow for
them, the large one too dear."""
TRAIN, TEST = 8_000, 4_000


def train(trial: ss.Trial) -> None:
    train_x, train_y, test_x, test_y = fashion(TRAIN, TEST)
    part = trial.subsample(len(train_x))
    x, y = train_x[part].reshape(len(part), -1), train_y[part]
    weights, mean, square, updates = *fresh(trial["width"]), 0
    if trial.checkpoint:
        with np.load(trial.checkpoint / "state.npz") as state:
            kept = [[state[f"{kind}{number}"] for number in range(4)] for kind in "wms"]
            (weights, mean, square), updates = kept, int(state["updates"])
    for step in trial.steps():
        began = time.monotonic()
        order = np.random.default_rng(step).permutation(len(x))
        for batch in np.array_split(order, max(1, len(order) // trial["batch"])):
            updates += 1
            adam(weights, slopes(weights, x[batch], y[batch]), mean, square, trial["lr"], updates)
        guessed = forward(weights, test_x.reshape(len(test_x), -1))[1].argmax(1)
        work = 6e-9 * len(x) * 794 * trial["width"]  # GFLOP: there, back, and the weights' slopes
        time.sleep(max(0.0, began + work / GFLOP_PER_S[trial["machine"]] - time.monotonic()))
        trial.report(accuracy=np.mean(guessed == test_y))
        with trial.save() as folder:
            if folder:
                kinds = {"w": weights, "m": mean, "s": square}
                state = {f"{kind}{i}": array for kind, arrays in kinds.items() for i, array in enumerate(arrays)}
                np.savez(folder / "state.npz", updates=updates, **state)


Arrays = list[np.ndarray]


def fresh(width: int) -> tuple[Arrays, Arrays, Arrays]:
    """Weights, and Adam's averages of slopes and of their squares."""
    rng = np.random.default_rng(0)
    hidden, out = rng.normal(0, np.sqrt(2 / 784), (784, width)), rng.normal(0, np.sqrt(2 / width), (width, 10))
    weights = [array.astype(np.float32) for array in (hidden, np.zeros(width), out, np.zeros(10))]
    mean, square = ([np.zeros_like(array) for array in weights] for _ in range(2))
    return weights, mean, square


def forward(weights: Arrays, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the hidden layer says, and how likely each class is."""
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    out = hidden @ weights[2] + weights[3]
    odds = np.exp(out - out.max(1, keepdims=True))
    return hidden, odds / odds.sum(1, keepdims=True)


def slopes(weights: Arrays, x: np.ndarray, y: np.ndarray) -> Arrays:
    """Of the mean cross entropy, for every weight."""
    hidden, blame = forward(weights, x)
    blame[np.arange(len(y)), y] -= 1
    blame /= len(y)
    back = blame @ weights[2].T * (hidden > 0)
    return [x.T @ back, back.sum(0), hidden.T @ blame, blame.sum(0)]


def adam(weights: Arrays, slope: Arrays, mean: Arrays, square: Arrays, lr: float, updates: int) -> None:
    lr = lr * np.sqrt(1 - 0.999**updates) / (1 - 0.9**updates)
    for weight, new, m, s in zip(weights, slope, mean, square, strict=True):
        m += 0.1 * (new - m)
        s += 0.001 * (new**2 - s)
        weight -= np.float32(lr) * m / (np.sqrt(s) + 1e-8)


if __name__ == "__main__":
    ss.tune(
        train,
        name="trimmed",
        space=SPACE,
        maximize=METRIC,
        max_steps=MAX_STEPS,
        fractions=FRACTIONS,
        constraints=LIMITS,
        recipe="trimtuner",
        trials=24,
        budget="$5",
        deadline="3d",
        max_machines=2,
        speedup=600,
    )
