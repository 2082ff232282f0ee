"""A network of two hidden layers, trained with Adam on MNIST. The loss is cross entropy.

    python examples/workloads/mlp.py

It stands for AlexNet in SpotTune's Table II, with its hyperparameters. Digits are shifted at random as data
augmentation. NumPy alone; Adam's moments are part of the checkpoint, so that a resumed trial equals an uninterrupted
one.
"""

import os
from itertools import pairwise

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # trials run in parallel: one core each is fastest

import numpy as np
from pictures import mnist

import shoestring as ss

SPACE = {
    "batch": ss.choice(128, 64),
    "lr": ss.choice(1e-2, 1e-3),
    "decay": ss.choice(0.95, 0.7),
    "decay_every": ss.choice(4, 6),  # steps
}
METRIC, MAX_STEPS = "cross_entropy", 40
SIZES = (784, 96, 48, 10)

Arrays = dict[str, np.ndarray]


def train(trial: ss.Trial) -> None:
    train_x, train_y, test_x, test_y = mnist(train=8_000, test=2_000)
    test_x = test_x.reshape(len(test_x), -1)
    weights = fresh_weights()
    mean, square = ({name: np.zeros_like(weight) for name, weight in weights.items()} for _ in range(2))
    updates = 0
    if trial.checkpoint:
        with np.load(trial.checkpoint / "state.npz") as state:
            weights, mean, square = ({name: state[f"{kind}_{name}"] for name in weights} for kind in "wms")
            updates = int(state["updates"])
    for step in trial.steps():
        lr = trial["lr"] * trial["decay"] ** ((step - 1) // trial["decay_every"])
        rng = np.random.default_rng(step)
        order = rng.permutation(len(train_x))
        for batch in np.array_split(order, len(order) // trial["batch"]):
            updates += 1
            shifted = np.roll(train_x[batch], rng.integers(-2, 3, 2), axis=(1, 2)).reshape(len(batch), -1)
            adam(weights, gradients(weights, shifted, train_y[batch]), mean, square, lr, updates)
        likelihood = forward(weights, test_x)[-1][np.arange(len(test_y)), test_y]
        trial.report(cross_entropy=-np.log(likelihood.clip(1e-12)).mean())
        with trial.save() as folder:
            if folder:
                kinds = {"w": weights, "m": mean, "s": square}
                state = {f"{kind}_{name}": array for kind, arrays in kinds.items() for name, array in arrays.items()}
                np.savez(folder / "state.npz", updates=updates, **state)


def fresh_weights() -> Arrays:
    rng, weights = np.random.default_rng(0), {}
    for layer, (wide, narrow) in enumerate(pairwise(SIZES)):
        weights[f"w{layer}"] = rng.normal(0, np.sqrt(2 / wide), (wide, narrow)).astype(np.float32)
        weights[f"b{layer}"] = np.zeros(narrow, np.float32)
    return weights


def forward(weights: Arrays, x: np.ndarray) -> list[np.ndarray]:
    """The input of each layer, and at the end the class probabilities."""
    layers, last = [x], len(SIZES) - 2
    for layer in range(last + 1):
        x = x @ weights[f"w{layer}"] + weights[f"b{layer}"]
        x = np.maximum(x, 0) if layer < last else np.exp(x - x.max(1, keepdims=True))
        layers.append(x)
    layers[-1] = x / x.sum(1, keepdims=True)
    return layers


def gradients(weights: Arrays, x: np.ndarray, y: np.ndarray) -> Arrays:
    """Of the mean cross entropy, with respect to every weight."""
    layers, found = forward(weights, x), {}
    error = layers.pop()
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    for layer in reversed(range(len(layers))):
        found[f"w{layer}"], found[f"b{layer}"] = layers[layer].T @ error, error.sum(0)
        error = error @ weights[f"w{layer}"].T * (layers[layer] > 0)
    return found


def adam(weights: Arrays, gradient: Arrays, mean: Arrays, square: Arrays, lr: float, updates: int) -> None:
    lr = lr * np.sqrt(1 - 0.999**updates) / (1 - 0.9**updates)
    for name, weight in weights.items():
        mean[name] += 0.1 * (gradient[name] - mean[name])
        square[name] += 0.001 * (gradient[name] ** 2 - square[name])
        weight -= np.float32(lr) * mean[name] / (np.sqrt(square[name]) + 1e-8)


if __name__ == "__main__":
    ss.tune(train, name="mlp", space=SPACE, recipe="grid", minimize=METRIC, max_steps=MAX_STEPS)
