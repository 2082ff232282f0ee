"""Candidates: every configuration once, as numbers from 0 to 1."""

from __future__ import annotations

import numpy as np
import pytest

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.optimizer.candidates import listed
from shoestring.optimizer.initial_design import latin_hypercube


def test_a_finite_space_is_listed_with_one_length_for_each_parameter() -> None:
    found = listed({"kind": ss.choice("a", "b", "c"), "width": ss.integer(1, 3), "same": ss.constant(7)})
    assert found is not None
    assert len(found) == 9
    assert found.parameter.tolist() == [0, 0, 0, 1]
    assert found.x[found.row({"width": 3, "kind": "b", "same": 7})].tolist() == [0.0, 1.0, 0.0, 1.0]


def test_a_table_has_ranges_for_numbers_and_choices_for_text() -> None:
    rows = [{"rate": 10.0**-k, "batch": b, "kind": kind, "n": 1} for k in (1, 3) for b in (4, 8) for kind in "xy"]
    found = listed(rows)
    assert found is not None
    assert found.parameter.tolist() == [0, 1, 2, 2]
    assert sorted(set(found.x[:, 0])) == [0.0, 1.0]
    assert len(found) == 8


def test_rows_of_a_table_that_occur_twice_are_one_candidate_and_true_is_not_one() -> None:
    found = listed([{"flag": True}, {"flag": 1}, {"flag": True}])
    assert found is not None
    assert len(found) == 2


def test_only_some_configurations_of_a_space_can_be_candidates() -> None:
    space = {"rate": ss.log(1e-5, 1e-1), "batch": ss.integer(16, 256, log=True)}
    found = listed(space, [{"rate": 1e-3, "batch": 16}, {"rate": 1e-5, "batch": 256}, {"batch": 16, "rate": 1e-3}])
    assert found is not None
    assert found.x.round(3).tolist() == [[0.5, 0.0], [0.0, 1.0]]
    with pytest.raises(SpecError, match="not in the space"):
        listed(space, [{"rate": 1.0, "batch": 16}])


def test_conditional_parameters_share_the_length_of_their_flag() -> None:
    found = listed({"kind": ss.choice("sgd", "adam"), "steps": ss.integer(1, 2, when={"kind": "sgd"})})
    assert found is not None
    assert len(found) == 3
    assert found.parameter.tolist() == [0, 0, 1, 1]


def test_there_must_be_candidates() -> None:
    with pytest.raises(SpecError, match="no candidates"):
        listed([])
    with pytest.raises(SpecError, match="no candidates"):
        listed({"a": ss.integer(1, 3)}, [])
    with pytest.raises(SpecError, match="other parameters"):
        listed([{"a": 1}, {"b": 1}])
    with pytest.raises(SpecError, match="not a configuration"):
        listed([3])


def test_the_initial_design_is_spread_over_every_parameter() -> None:
    found = listed({"a": ss.integer(0, 99), "b": ss.integer(0, 99), "kind": ss.choice(*"wxyz")})
    assert found is not None
    rows = latin_hypercube(found, 4, seed=3)
    assert len(set(rows)) == 4
    for column in (0, 1):
        assert sorted((found.x[rows, column] * 3.999).astype(int)) == [0, 1, 2, 3]
    assert found.x[rows, 2:].sum(axis=0).tolist() == [1.0] * 4
    assert rows == latin_hypercube(found, 4, seed=3)
    assert rows != latin_hypercube(found, 4, seed=4)


def test_the_initial_design_has_no_more_runs_than_candidates() -> None:
    one = listed([{"only": 1}])
    assert one is not None
    assert latin_hypercube(one, 4, seed=0) == [0]
    few = listed({"kind": ss.choice("a", "b", "c")})
    assert few is not None
    assert sorted(latin_hypercube(few, 4, seed=0)) == [0, 1, 2]
    assert np.isfinite(few.x).all()
