"""Initial design: a few configurations that differ in every parameter."""

from __future__ import annotations

import numpy as np

from shoestring.optimizer.candidates import Candidates, Numbers


def latin_hypercube(candidates: Candidates, count: int, seed: int, turn: int = 0) -> list[int]:
    """Rows of a Latin hypercube of `count` points: the candidate nearest to each, no candidate twice. Each turn is
    another hypercube."""
    count = min(count, len(candidates))
    rng = np.random.default_rng([seed, 0, turn])
    strata = np.array([rng.permutation(count) for _ in range(candidates.parameters)]).reshape(-1, count).T
    cube = (strata + rng.random(strata.shape)) / count
    chosen: list[int] = []
    for point in cube:
        apart = ((candidates.x - encoded(point, candidates)) ** 2).sum(axis=1)
        apart[chosen] = np.inf
        chosen.append(int(apart.argmin()))
    return chosen


def encoded(point: Numbers, candidates: Candidates) -> Numbers:
    """A point of the cube in the columns of the candidates, with one option of each choice."""
    encoded = np.zeros(len(candidates.parameter))
    for number in range(candidates.parameters):
        columns = np.flatnonzero(candidates.parameter == number)
        if len(columns) == 1:
            encoded[columns] = point[number]
        else:
            encoded[columns[min(int(point[number] * len(columns)), len(columns) - 1)]] = 1.0
    return encoded
