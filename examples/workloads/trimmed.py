"""Hyperparameters, machines and data fractions in one study, on Fashion-MNIST.

    python examples/workloads/trimmed.py

A network of one hidden layer. `trial.subsample` gives the images to train on, `trial["machine"]` the machine. All
"machines" are processes of this computer, so a slow one is emulated: it sleeps until it has taken as long as its speed
implies. The training is real.
"""

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # trials run in parallel: one core each is fastest

import numpy as np
from pictures import fashion

import shoestring as ss

GFLOP_PER_S = {"m5.large": 4.0, "m5.xlarge": 6.5, "m5.2xlarge": 10.5}
"""A machine of twice the size has 1.6 times the speed, at twice the price."""
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
"""Of a run on all images. The widest networks satisfy both on the middle machine only: the small one is too slow for
them, the large one too expensive."""
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
            adam(weights, gradients(weights, x[batch], y[batch]), mean, square, trial["lr"], updates)
        predicted = forward(weights, test_x.reshape(len(test_x), -1))[1].argmax(1)
        work = 6e-9 * len(x) * 794 * trial["width"]  # GFLOP: forward, backward, and the weights' gradients
        time.sleep(max(0.0, began + work / GFLOP_PER_S[trial["machine"]] - time.monotonic()))
        trial.report(accuracy=np.mean(predicted == test_y))
        with trial.save() as folder:
            if folder:
                kinds = {"w": weights, "m": mean, "s": square}
                state = {f"{kind}{i}": array for kind, arrays in kinds.items() for i, array in enumerate(arrays)}
                np.savez(folder / "state.npz", updates=updates, **state)


Arrays = list[np.ndarray]


def fresh(width: int) -> tuple[Arrays, Arrays, Arrays]:
    """Weights, and Adam's first and second moments."""
    rng = np.random.default_rng(0)
    hidden, out = rng.normal(0, np.sqrt(2 / 784), (784, width)), rng.normal(0, np.sqrt(2 / width), (width, 10))
    weights = [array.astype(np.float32) for array in (hidden, np.zeros(width), out, np.zeros(10))]
    mean, square = ([np.zeros_like(array) for array in weights] for _ in range(2))
    return weights, mean, square


def forward(weights: Arrays, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Activations of the hidden layer, and class probabilities."""
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    out = hidden @ weights[2] + weights[3]
    odds = np.exp(out - out.max(1, keepdims=True))
    return hidden, odds / odds.sum(1, keepdims=True)


def gradients(weights: Arrays, x: np.ndarray, y: np.ndarray) -> Arrays:
    """Of the mean cross entropy, with respect to every weight."""
    hidden, error = forward(weights, x)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    back = error @ weights[2].T * (hidden > 0)
    return [x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]


def adam(weights: Arrays, gradient: Arrays, mean: Arrays, square: Arrays, lr: float, updates: int) -> None:
    lr = lr * np.sqrt(1 - 0.999**updates) / (1 - 0.9**updates)
    for weight, new, m, s in zip(weights, gradient, mean, square, strict=True):
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
