"""Optuna spaces for the optimizer: every chosen value is a valid Optuna value, and every such value translates back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("optuna")
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from shoestring.for_optuna.translation import Translation, fits

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
WHOLE = st.integers(-(10**9), 10**9)
CHOICES = st.lists(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False), min_size=1, max_size=5
)


@st.composite
def distributions(draw: st.DrawFn) -> BaseDistribution:
    match draw(st.sampled_from(["float", "float_log", "float_step", "int", "int_log", "int_step", "choice"])):
        case "float":
            return FloatDistribution(*sorted([draw(NUMBERS), draw(NUMBERS)]))
        case "float_log":
            low = draw(st.floats(1e-9, 1e3))
            return FloatDistribution(low, low * draw(st.floats(1, 1e6)), log=True)
        case "float_step":
            low, step = draw(st.floats(-100, 100)), draw(st.sampled_from([0.1, 0.25, 0.3, 1.0, 7.0]))
            return FloatDistribution(low, low + step * draw(st.integers(0, 50)) + step / 3, step=step)
        case "int":
            return IntDistribution(*sorted([draw(WHOLE), draw(WHOLE)]))
        case "int_log":
            return IntDistribution(*sorted([draw(st.integers(1, 10**6)), draw(st.integers(1, 10**6))]), log=True)
        case "int_step":
            low = draw(WHOLE)
            return IntDistribution(low, low + draw(st.integers(0, 1000)), step=draw(st.integers(2, 9)))
    return CategoricalDistribution(draw(CHOICES))


@pytest.mark.filterwarnings("ignore::UserWarning")  # Optuna's, of ranges that are no multiple of their step
@given(st.dictionaries(st.text(), distributions(), max_size=4), st.randoms(use_true_random=False))
def test_a_chosen_value_is_a_valid_optuna_value_and_translates_back(
    space: dict[str, BaseDistribution], rng: random.Random
) -> None:
    translation = Translation(space)
    chosen = translation.space.sample(rng)
    params = translation.params(chosen)
    assert params.keys() == space.keys()
    for name, kind in space.items():
        assert kind._contains(kind.to_internal_repr(params[name]))
        assert isinstance(kind, CategoricalDistribution) or type(params[name]) is type(kind.low)
    again = translation.config(params)
    assert again is not None
    assert translation.params(again) == params


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (FloatDistribution(0, 1), 1.5),
        (FloatDistribution(0, 1, step=0.25), 0.3),
        (IntDistribution(0, 10, step=5), 7),
        (IntDistribution(0, 10), 11),
        (CategoricalDistribution(["a", "b"]), "c"),
        (FloatDistribution(1, 1), 2.0),
    ],
)
def test_values_outside_of_the_space_are_skipped(kind: BaseDistribution, value: object) -> None:
    assert Translation({"x": kind}).config({"x": value}) is None


def test_a_parameter_that_is_absent_leaves_no_configuration() -> None:
    assert Translation({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}).config({"x": 0.5}) is None


def test_ranges_that_the_optimizer_cannot_represent_are_left_to_others() -> None:
    assert not fits(IntDistribution(0, 2**60))
    assert not fits(FloatDistribution(0, float("inf")))
    assert fits(IntDistribution(0, 2**40))
