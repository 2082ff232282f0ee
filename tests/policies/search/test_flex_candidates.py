"""Rows of candidates become configurations of the space, and are encoded as those are."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.policies.search.flex.proposals import anywhere, around, config_at, encoded
from shoestring.space.space import Choice, Constant, Float, Int, Space

MIXED = Space(
    params={
        "kind": Choice(options=("a", "b", "c")),
        "layers": Int(low=1, high=5),
        "units": Int(low=8, high=512, log=True),
        "rate": Float(low=1e-5, high=1.0, log=True),
        "momentum": Float(low=0.1, high=0.9, when={"kind": ("a", "b")}),
        "decay": Float(low=0.0, high=1.0, when={"layers": (2, 3)}),
        "fixed": Constant(value=7),
    }
)


@pytest.mark.parametrize("near", [False, True])
def test_every_row_is_a_configuration_and_encoded_as_one(near: bool) -> None:
    rng = np.random.default_rng(0)
    rows = anywhere(MIXED, 200, rng)
    if near:
        rows = around(MIXED, [config_at(MIXED, row) for row in rows[:20]], 200, rng)
    numbers = encoded(MIXED, rows)
    assert numbers.shape == (200, MIXED.dimensions)
    for row, found in zip(rows, numbers, strict=True):
        config = config_at(MIXED, row)
        MIXED.check(config)
        assert found == pytest.approx(MIXED.encode(config), abs=1e-9)


def test_steps_aside_stay_close_and_keep_most_options() -> None:
    centre = config_at(MIXED, np.full(7, 0.5))
    rows = around(MIXED, [centre], 400, np.random.default_rng(1))
    rates = rows[:, 3]
    assert 0.3 < rates.mean() < 0.7
    assert rates.std() < 0.2
    kept = np.mean([config_at(MIXED, row)["kind"] == centre["kind"] for row in rows])
    assert 0.75 < kept < 0.95


def test_steps_aside_from_an_edge_stay_inside() -> None:
    edge = {"x": 0.0}
    space = Space(params={"x": Float(low=0.0, high=1.0)})
    rows = around(space, [edge], 200, np.random.default_rng(2))
    assert rows.min() >= 0.0
    assert rows.max() <= 1.0
    assert np.median(rows) < 0.25


def test_values_of_a_given_configuration_outside_the_space_are_resampled() -> None:
    space = Space(params={"x": Float(low=0.0, high=1.0)})
    rows = around(space, [{"x": 5.0}], 200, np.random.default_rng(3))
    assert rows.std() > 0.2
