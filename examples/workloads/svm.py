"""A support vector machine by gradient descent on the hinge loss: Fashion-MNIST, one against the rest.

    python examples/workloads/svm.py

Like the second row of SpotTune's Table II. The features are the pixels, or random Fourier features, which approximate
an RBF kernel at a fraction of its cost.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # trials run in parallel: one core each is fastest

import numpy as np
from pictures import fashion

import shoestring as ss

SPACE = {
    "batch": ss.choice(128, 64),
    "lr": ss.choice(3e-2, 1e-2),
    "decay": ss.choice(0.99, 0.9),  # of the learning rate, after every step
    "kernel": ss.choice("rbf", "linear"),
}
METRIC, MAX_STEPS = "hinge", 40
WAVES, WIDTH = 1024, 6.0
L2 = 1e-4


def train(trial: ss.Trial) -> None:
    train_x, train_y, test_x, test_y = fashion(train=20_000, test=5_000)
    train_x, test_x = features(train_x, trial["kernel"]), features(test_x, trial["kernel"])
    train_signs, test_signs = signs(train_y), signs(test_y)
    weights = np.zeros((train_x.shape[1], 10), np.float32)
    if trial.checkpoint:
        with np.load(trial.checkpoint / "state.npz") as state:
            weights = state["weights"]
    for step in trial.steps():
        lr = trial["lr"] * trial["decay"] ** (step - 1)
        order = np.random.default_rng(step).permutation(len(train_x))
        for batch in np.array_split(order, len(order) // trial["batch"]):
            x, sign = train_x[batch], train_signs[batch]
            inside = sign * (x @ weights) < 1  # within the margin, or misclassified
            weights -= lr * (L2 * weights - x.T @ (inside * sign) / len(batch))
        trial.report(hinge=np.maximum(0, 1 - test_signs * (test_x @ weights)).mean())
        with trial.save() as folder:
            if folder:
                np.savez(folder / "state.npz", weights=weights)


def features(pictures: np.ndarray, kernel: str) -> np.ndarray:
    """The pixels, or random Fourier features of them; both with a constant."""
    flat = pictures.reshape(len(pictures), -1)
    if kernel == "rbf":
        rng = np.random.default_rng(0)
        directions = rng.normal(0, 1 / WIDTH, (flat.shape[1], WAVES)).astype(np.float32)
        phases = rng.uniform(0, 2 * np.pi, WAVES).astype(np.float32)
        flat = np.cos(flat @ directions + phases)
    return np.column_stack([flat, np.ones(len(flat), np.float32)])


def signs(labels: np.ndarray) -> np.ndarray:
    """One against the rest: +1 for the class, -1 for all others."""
    return np.where(labels[:, None] == np.arange(10), np.float32(1), np.float32(-1))


if __name__ == "__main__":
    ss.tune(train, name="svm", space=SPACE, recipe="grid", minimize=METRIC, max_steps=MAX_STEPS)
