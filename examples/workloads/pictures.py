"""The images that these workloads train on. Replace them with data of your own.

Real ones (Fashion-MNIST, MNIST) are read from the folder in SHOESTRING_DATA; where they are not available, blurred and
noisy digits are generated, which are easier but have similar curves.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shoestring.demo.digits import digits

BESIDE_THE_PROJECT = Path(__file__).resolve().parent / "../../../shared/data"


class Pictures(NamedTuple):
    """28 by 28 pixels from 0 to 1, and labels from 0 to 9."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def fashion(train: int, test: int) -> Pictures:
    """Fashion-MNIST, at most 20,000 and 5,000 images."""
    path = data_folder() / "fashion_mnist_20k_5k.npz"
    if not path.exists():
        return generated(train, test)
    with np.load(path) as file:
        return pictures(file["x_train"][:train], file["y_train"][:train], file["x_test"][:test], file["y_test"][:test])


def mnist(train: int, test: int) -> Pictures:
    """MNIST, at most 10,000 images together."""
    path = data_folder() / "mnist_10k.npz"
    if not path.exists():
        return generated(train, test)
    with np.load(path) as file:
        x, y = file["x"], file["y"]
    return pictures(x[:train], y[:train], x[-test:], y[-test:])


def generated(train: int, test: int) -> Pictures:
    train_x, train_y = digits(train, seed=1)
    test_x, test_y = digits(test, seed=2)
    return Pictures(enlarged(train_x), train_y, enlarged(test_x), test_y)


def pictures(train_x: np.ndarray, train_y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray) -> Pictures:
    return Pictures(train_x / np.float32(255), train_y.astype(int), test_x / np.float32(255), test_y.astype(int))


def enlarged(small: np.ndarray) -> np.ndarray:
    """8 by 6 pixels, each three times as large, in a frame."""
    large = small.reshape(-1, 8, 6).clip(0, 1).repeat(3, axis=1).repeat(3, axis=2)
    return np.pad(large, [(0, 0), (2, 2), (5, 5)]).astype(np.float32)


def data_folder() -> Path:
    return Path(os.environ.get("SHOESTRING_DATA") or BESIDE_THE_PROJECT)
