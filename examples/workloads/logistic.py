"""Logistic regression by gradient descent: Fashion-MNIST, ten classes. The loss is cross entropy.

    python examples/workloads/logistic.py

Like the first row of SpotTune's Table II. The random generator of a step is seeded by the step's number, so a resumed
trial, on any machine, equals an uninterrupted one to the bit.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # trials run in parallel: one core each is fastest

import numpy as np
from pictures import fashion

import shoestring as ss

SPACE = {
    "batch": ss.choice(128, 64),
    "lr": ss.choice(1e-1, 1e-2),
    "decay": ss.choice(0.99, 0.95),
    "decay_every": ss.choice(100, 200),  # updates
}
METRIC, MAX_STEPS = "cross_entropy", 40


def train(trial: ss.Trial) -> None:
    train_x, train_y, test_x, test_y = fashion(train=20_000, test=5_000)
    train_x, test_x = train_x.reshape(len(train_x), -1), test_x.reshape(len(test_x), -1)
    weights, updates = np.zeros((train_x.shape[1], 10), np.float32), 0
    if trial.checkpoint:
        with np.load(trial.checkpoint / "state.npz") as state:
            weights, updates = state["weights"], int(state["updates"])
    for step in trial.steps():
        order = np.random.default_rng(step).permutation(len(train_x))
        for batch in np.array_split(order, len(order) // trial["batch"]):
            lr = trial["lr"] * trial["decay"] ** (updates // trial["decay_every"])
            error = softmax(train_x[batch] @ weights)
            error[np.arange(len(batch)), train_y[batch]] -= 1
            weights -= lr / len(batch) * (train_x[batch].T @ error)
            updates += 1
        likelihood = softmax(test_x @ weights)[np.arange(len(test_y)), test_y]
        trial.report(cross_entropy=-np.log(likelihood.clip(1e-12)).mean())
        with trial.save() as folder:
            if folder:
                np.savez(folder / "state.npz", weights=weights, updates=updates)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Class probabilities."""
    odds = np.exp(scores - scores.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)


if __name__ == "__main__":
    ss.tune(train, name="logistic", space=SPACE, recipe="grid", minimize=METRIC, max_steps=MAX_STEPS)
