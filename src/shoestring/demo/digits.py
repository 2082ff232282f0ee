"""Classify blurred, shifted, noisy digits: a small network, trained with NumPy alone.

    shoestring run examples/digits.py                                   # on this machine, free of charge
    shoestring run examples/digits.py --market modern --speedup 900 --budget 5 --deadline 8h
    shoestring simulate examples/digits.py --budget 20 --deadline 6h --trials 256 --max-machines 64

Five lines of `train` make it preemptible: the checkpoint, `steps`, `report`, and the block under `save`. NumPy is
imported where it is used: the controller process does not need it.
"""

from __future__ import annotations

import os
from typing import Any

import shoestring as ss

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small trials in parallel: one core each is fastest

SPACE = {
    "lr": ss.log(1e-3, 3.0),
    "momentum": ss.uniform(0.0, 0.98),
    "width": ss.integer(8, 128, log=True),
    "l2": ss.log(1e-6, 1e-1),
    "batch": ss.choice(16, 64, 256),
}

ROWS = ("55555", "22222", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717")
"""Each digit as five rows of three pixels: 7 is ###, 5 is #.#, 4 is #.., 2 is .#., 1 is ..#"""


def train(trial: ss.Trial) -> None:
    import numpy as np

    train_x, train_y = digits(4000, seed=1)
    test_x, test_y = digits(2000, seed=2)
    width = int(trial["width"])  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    weights = {
        "hidden": rng.normal(0, 0.3, (train_x.shape[1], width)),
        "hidden_bias": np.zeros(width),
        "out": rng.normal(0, 0.3, (width, 10)),
        "out_bias": np.zeros(10),
    }
    velocities = {name: np.zeros_like(weight) for name, weight in weights.items()}
    if trial.checkpoint:
        saved = np.load(trial.checkpoint / "net.npz")
        weights = {name: saved[name] for name in weights}
        velocities = {name: saved[f"velocity_{name}"] for name in velocities}
    for step in trial.steps():
        order = np.random.default_rng(step).permutation(len(train_x))
        for batch in np.array_split(order, len(order) // int(trial["batch"])):  # type: ignore[arg-type]
            descend(weights, velocities, train_x[batch], train_y[batch], trial)
        trial.report(error=float((predict(weights, test_x)[1].argmax(1) != test_y).mean()))
        with trial.save() as folder:
            if folder:
                state: dict[str, Any] = {
                    **weights,
                    **{f"velocity_{name}": velocity for name, velocity in velocities.items()},
                }
                np.savez(folder / "net.npz", **state)


def digits(count: int, seed: int) -> tuple[Any, Any]:
    """Images of 8 by 6 pixels, and their labels."""
    import numpy as np

    rng = np.random.default_rng(seed)
    shapes = np.array([[[int(row) >> (2 - x) & 1 for x in range(3)] for row in rows] for rows in ROWS], float)
    labels = rng.integers(0, 10, count)
    pictures = np.zeros((count, 8, 6))
    for picture, label in zip(pictures, labels, strict=True):
        top, left = rng.integers(0, 4), rng.integers(0, 4)
        picture[top : top + 5, left : left + 3] = shapes[label] * rng.uniform(0.6, 1.4)
    blurred = pictures + 0.3 * (np.roll(pictures, 1, 1) + np.roll(pictures, 1, 2))
    return (blurred + rng.normal(0, 0.2, pictures.shape)).reshape(count, -1), labels


def predict(weights: dict[str, Any], x: Any) -> tuple[Any, Any]:
    """Activations of the hidden layer, and the probability of each digit."""
    import numpy as np

    hidden = np.tanh(x @ weights["hidden"] + weights["hidden_bias"])
    scores = hidden @ weights["out"] + weights["out_bias"]
    odds = np.exp(scores - scores.max(1, keepdims=True))
    return hidden, odds / odds.sum(1, keepdims=True)


def descend(weights: dict[str, Any], velocities: dict[str, Any], x: Any, y: Any, trial: ss.Trial) -> None:
    """One step of gradient descent with momentum, on one batch."""
    import numpy as np

    hidden, error = predict(weights, x)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    back = error @ weights["out"].T * (1 - hidden**2)
    gradients = {"hidden": x.T @ back, "hidden_bias": back.sum(0), "out": hidden.T @ error, "out_bias": error.sum(0)}
    for name, gradient in gradients.items():
        velocities[name] = trial["momentum"] * velocities[name] - trial["lr"] * (gradient + trial["l2"] * weights[name])
        weights[name] = weights[name] + velocities[name]


if __name__ == "__main__":
    ss.tune(train, name="digits", space=SPACE, minimize="error", trials=24, max_steps=81)
