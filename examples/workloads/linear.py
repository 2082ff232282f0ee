"""Linear regression by gradient descent: the lower half of an image from its upper half. The loss is squared error.

    python examples/workloads/linear.py

Like the fourth row of SpotTune's Table II. The lower half is predicted at half its resolution.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # trials run in parallel: one core each is fastest

import numpy as np
from pictures import fashion

import shoestring as ss

SPACE = {
    "batch": ss.choice(128, 64),
    "lr": ss.choice(1e-2, 1e-3),
    "decay": ss.choice(0.99, 0.95),
    "decay_every": ss.choice(100, 200),  # updates
}
METRIC, MAX_STEPS = "mse", 40


def train(trial: ss.Trial) -> None:
    pictures = fashion(train=20_000, test=5_000)
    train_x, train_y = halves(pictures.train_x)
    test_x, test_y = halves(pictures.test_x)
    weights, updates = np.zeros((train_x.shape[1], train_y.shape[1]), np.float32), 0
    if trial.checkpoint:
        with np.load(trial.checkpoint / "state.npz") as state:
            weights, updates = state["weights"], int(state["updates"])
    for step in trial.steps():
        order = np.random.default_rng(step).permutation(len(train_x))
        for batch in np.array_split(order, len(order) // trial["batch"]):
            lr = trial["lr"] * trial["decay"] ** (updates // trial["decay_every"])
            x = train_x[batch]
            weights -= lr / len(batch) * (x.T @ (x @ weights - train_y[batch]))
            updates += 1
        trial.report(mse=np.square(test_x @ weights - test_y).mean())
        with trial.save() as folder:
            if folder:
                np.savez(folder / "state.npz", weights=weights, updates=updates)


def halves(pictures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with a constant, and targets."""
    count = len(pictures)
    upper, lower = pictures[:, :14].reshape(count, -1), pictures[:, 14:]
    coarse = lower.reshape(count, 7, 2, 14, 2).mean(axis=(2, 4)).reshape(count, -1)
    return np.column_stack([upper, np.ones(count, np.float32)]), coarse


if __name__ == "__main__":
    ss.tune(train, name="linear", space=SPACE, recipe="grid", minimize=METRIC, max_steps=MAX_STEPS)
