"""The little linear algebra of normal distributions. Plain Python: a dozen columns are factored sooner than a library
is loaded, and the digits are the same on every processor."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cholesky(matrix: list[list[float]]) -> list[list[float]]:
    """L with L L^T = matrix."""
    factor: list[list[float]] = []
    for i, row in enumerate(matrix):
        made: list[float] = []
        for j in range(i + 1):
            above = factor[j] if j < i else made
            rest = row[j] - sum(map(float.__mul__, made, above))
            made.append(math.sqrt(rest) if i == j else rest / above[j])
        factor.append(made)
    return factor


def solved_forward(factor: list[list[float]], right: Sequence[float]) -> list[float]:
    """x with L x = right."""
    x: list[float] = []
    for row, value in zip(factor, right, strict=True):
        x.append((value - sum(map(float.__mul__, row, x))) / row[-1])
    return x


def solved_backward(factor: list[list[float]], right: Sequence[float]) -> list[float]:
    """x with L^T x = right."""
    x = list(right)
    for i in reversed(range(len(x))):
        x[i] /= factor[i][i]
        for j in range(i):
            x[j] -= factor[i][j] * x[i]
    return x


def squared(x: Sequence[float]) -> float:
    return sum(each * each for each in x)
