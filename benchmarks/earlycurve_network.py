"""A small network, trained for real, whose learning rate falls in steps: its curve has a kink at every fall.

One hidden layer, plain stochastic gradient descent on generated images of digits. At a large learning rate the loss
stays above the minimum because of gradient noise; lowered, it falls again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shoestring.demo.digits import digits

STEPS = 60
FALLS = (20, 36)
"""After these steps the learning rate is divided by five."""
CONFIGS = tuple(product((0.8, 0.4), (8, 16), (24, 48), (0.0, 3e-4)))
"""Learning rate, batch size, hidden units, weight decay."""


@dataclass(frozen=True)
class Curve:
    config: tuple[float, int, int, float]
    values: list[float]
    """Cross entropy on test images, after each step."""


def trained(configs: tuple[tuple[float, int, int, float], ...] = CONFIGS) -> list[Curve]:
    train_x, train_y = digits(1200, seed=1)
    test_x, test_y = digits(1000, seed=2)
    return [Curve(config, _losses(config, train_x, train_y, test_x, test_y)) for config in configs]


def _losses(
    config: tuple[float, int, int, float],
    x: NDArray[np.float64],
    y: NDArray[np.int_],
    test_x: NDArray[np.float64],
    test_y: NDArray[np.int_],
) -> list[float]:
    rate, batch, units, decay = config
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 0.2, (x.shape[1], units)), rng.normal(0, 0.2, (units, 10))
    losses = []
    for step in range(1, STEPS + 1):
        lr = rate * 0.2 ** sum(step >= fall for fall in FALLS)
        for rows in np.array_split(rng.permutation(len(x)), len(x) // batch):
            hidden = np.maximum(x[rows] @ first, 0.0)
            blame = _likely(hidden @ second)
            blame[np.arange(len(rows)), y[rows]] -= 1.0
            blame /= len(rows)
            back = blame @ second.T * (hidden > 0.0)
            second -= lr * (hidden.T @ blame + decay * second)
            first -= lr * (x[rows].T @ back + decay * first)
        right = _likely(np.maximum(test_x @ first, 0.0) @ second)[np.arange(len(test_y)), test_y]
        losses.append(float(-np.log(right.clip(1e-12)).mean()))
    return losses


def _likely(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    normed: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
    return normed
