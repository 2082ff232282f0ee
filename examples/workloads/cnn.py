"""A small residual network, trained with Adam and a learning rate that falls in steps, on Fashion-MNIST.

    python examples/workloads/cnn.py

It stands for ResNet in SpotTune's Table II, with its hyperparameters: batch, version and number of residual blocks, and
when the learning rate falls. Each fall begins a new stage of the curve. NumPy alone; images have the axes batch, row,
column, channel.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # trials run in parallel: one core each is fastest

import numpy as np
from pictures import fashion

import shoestring as ss

SPACE = {
    "batch": ss.choice(64, 32),
    "version": ss.choice(1, 2),  # relu after adding, or before the convolution
    "blocks": ss.choice(3, 2),
    "decay_at": ss.choice(12, 18),
}
METRIC, MAX_STEPS = "cross_entropy", 36
STAGES = {12: (12, 24), 18: (18, 27)}
"""By `decay_at`: the steps after which the learning rate is divided by five, and a new stage begins."""
FIRST_LR = 1e-2
PICTURES = 1_200
"""Images per step, sampled at random."""
CHANNELS, SIDE = 8, 7

Arrays = dict[str, np.ndarray]


def train(trial: ss.Trial) -> None:
    train_x, train_y, test_x, test_y = fashion(train=20_000, test=1_000)
    train_x, test_x = coarse(train_x), coarse(test_x)
    weights = fresh_weights(trial["blocks"])
    mean, square = ({name: np.zeros_like(weight) for name, weight in weights.items()} for _ in range(2))
    updates = 0
    if trial.checkpoint:
        with np.load(trial.checkpoint / "state.npz") as state:
            weights, mean, square = ({name: state[f"{kind}_{name}"] for name in weights} for kind in "wms")
            updates = int(state["updates"])
    for step in trial.steps():
        lr = FIRST_LR * 0.2 ** sum(step > end for end in STAGES[trial["decay_at"]])
        order = np.random.default_rng(step).choice(len(train_x), PICTURES, replace=False)
        for batch in np.array_split(order, len(order) // trial["batch"]):
            updates += 1
            adam(weights, gradients(weights, train_x[batch], train_y[batch], trial), mean, square, lr, updates)
        likelihood = forward(weights, test_x, trial)[0][np.arange(len(test_y)), test_y]
        trial.report(cross_entropy=-np.log(likelihood.clip(1e-12)).mean())
        with trial.save() as folder:
            if folder:
                kinds = {"w": weights, "m": mean, "s": square}
                state = {f"{kind}_{name}": array for kind, arrays in kinds.items() for name, array in arrays.items()}
                np.savez(folder / "state.npz", updates=updates, **state)


def coarse(pictures: np.ndarray) -> np.ndarray:
    """14 by 14 pixels, one channel."""
    return pictures.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))[..., None]


def fresh_weights(blocks: int) -> Arrays:
    rng = np.random.default_rng(0)
    sizes = {"stem": (9, CHANNELS), **{f"block{number}": (9 * CHANNELS, CHANNELS) for number in range(blocks)}}
    sizes["out"] = (SIDE * SIDE * CHANNELS, 10)
    weights = {name: rng.normal(0, np.sqrt(1 / size[0]), size).astype(np.float32) for name, size in sizes.items()}
    return weights | {f"{name}_bias": np.zeros(size[1], np.float32) for name, size in sizes.items()}


# -- the network -------------------------------------------------------------------------------------------------------
def forward(weights: Arrays, x: np.ndarray, trial: ss.Trial) -> tuple[np.ndarray, list[tuple[np.ndarray, ...]]]:
    """Class probabilities, and the activations of every layer for the backward pass."""
    patches = im2col(x, stride=2)
    x = np.maximum(convolved(patches, weights, "stem"), 0)
    cache: list[tuple[np.ndarray, ...]] = [(patches, x)]
    for number in range(trial["blocks"]):
        patches = im2col(np.maximum(x, 0) if trial["version"] == 2 else x)
        ahead = x + convolved(patches, weights, f"block{number}")
        cache.append((patches, x, ahead))
        x = np.maximum(ahead, 0) if trial["version"] == 1 else ahead
    flat = x.reshape(len(x), -1)
    cache.append((flat,))
    scores = flat @ weights["out"] + weights["out_bias"]
    odds = np.exp(scores - scores.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True), cache


def gradients(weights: Arrays, x: np.ndarray, y: np.ndarray, trial: ss.Trial) -> Arrays:
    """Of the mean cross entropy, with respect to every weight."""
    error, cache = forward(weights, x, trial)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    (flat,) = cache.pop()
    found = {"out": flat.T @ error, "out_bias": error.sum(0)}
    back = (error @ weights["out"].T).reshape(-1, SIDE, SIDE, CHANNELS)
    for number in reversed(range(trial["blocks"])):
        patches, x, ahead = cache.pop()
        if trial["version"] == 1:
            back = back * (ahead > 0)
        through = col2im(convolution_gradients(found, weights, f"block{number}", patches, back))
        back = back + (through * (x > 0) if trial["version"] == 2 else through)
    patches, x = cache.pop()
    convolution_gradients(found, weights, "stem", patches, back * (x > 0))
    return found


# -- convolutions ------------------------------------------------------------------------------------------------------
def im2col(x: np.ndarray, stride: int = 1) -> np.ndarray:
    """im2col: every pixel with its eight neighbours, zero-padded, as one row."""
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    high, wide = x.shape[1:3]
    shifts = [padded[:, i : i + high : stride, j : j + wide : stride] for i in range(3) for j in range(3)]
    return np.concatenate(shifts, axis=3)


def convolved(patches: np.ndarray, weights: Arrays, name: str) -> np.ndarray:
    rows = patches.reshape(-1, patches.shape[-1])  # one large matrix product is much faster than many small ones
    return (rows @ weights[name] + weights[f"{name}_bias"]).reshape(-1, SIDE, SIDE, CHANNELS)


def convolution_gradients(
    found: Arrays, weights: Arrays, name: str, patches: np.ndarray, back: np.ndarray
) -> np.ndarray:
    """Stores the gradients of its weights; returns those of its patches."""
    rows = back.reshape(-1, CHANNELS)
    found[name], found[f"{name}_bias"] = patches.reshape(len(rows), -1).T @ rows, rows.sum(0)
    return (rows @ weights[name].T).reshape(patches.shape)


def col2im(patches: np.ndarray) -> np.ndarray:
    """col2im, the adjoint of `im2col`: the gradient of each pixel, summed over its neighbourhoods."""
    padded = np.zeros((len(patches), SIDE + 2, SIDE + 2, CHANNELS), patches.dtype)
    for shift in range(9):
        i, j = divmod(shift, 3)
        padded[:, i : i + SIDE, j : j + SIDE] += patches[..., shift * CHANNELS : (shift + 1) * CHANNELS]
    return padded[:, 1:-1, 1:-1]


def adam(weights: Arrays, gradient: Arrays, mean: Arrays, square: Arrays, lr: float, updates: int) -> None:
    lr = lr * np.sqrt(1 - 0.999**updates) / (1 - 0.9**updates)
    for name, weight in weights.items():
        mean[name] += 0.1 * (gradient[name] - mean[name])
        square[name] += 0.001 * (gradient[name] ** 2 - square[name])
        weight -= np.float32(lr) * mean[name] / (np.sqrt(square[name]) + 1e-8)


if __name__ == "__main__":
    ss.tune(train, name="cnn", space=SPACE, recipe="grid", minimize=METRIC, max_steps=MAX_STEPS)
