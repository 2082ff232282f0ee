"""Expectations over standard normal surprises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoestring.optimizer.acquisition.quadrature import MOST_NODES, gauss_hermite


def test_one_root_is_the_mean_alone() -> None:
    for outcomes in (1, 2, 5):
        nodes = gauss_hermite(1, outcomes)
        assert nodes.surprises.tolist() == [[0.0] * outcomes]
        assert nodes.weights.tolist() == [1.0]


@pytest.mark.parametrize("roots", [2, 3, 5])
def test_moments_of_a_normal_are_exact_up_to_twice_the_number_of_roots(roots: int) -> None:
    nodes = gauss_hermite(roots)
    for power in range(2 * roots):
        moment = 0.0 if power % 2 else math.prod(range(1, power, 2))
        assert nodes.weights @ nodes.surprises[:, 0] ** power == pytest.approx(moment, abs=1e-12)


@pytest.mark.parametrize("outcomes", [2, 3, 4, 7])
def test_outcomes_are_independent_with_unit_variance_whatever_their_number(outcomes: int) -> None:
    nodes = gauss_hermite(3, outcomes)
    assert len(nodes.weights) <= max(MOST_NODES, 2 * outcomes)
    assert nodes.weights.sum() == pytest.approx(1.0)
    assert nodes.weights @ nodes.surprises == pytest.approx(np.zeros(outcomes))
    spread = nodes.surprises.T @ (nodes.weights[:, None] * nodes.surprises)
    assert spread == pytest.approx(np.eye(outcomes))
