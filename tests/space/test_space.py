"""The search space: what may be in it, and what comes out of it."""

from __future__ import annotations

import itertools
import math
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.errors import SpecError
from shoestring.space.space import (
    Choice,
    Constant,
    Float,
    Int,
    Space,
    choice,
    constant,
    from_plain,
    integer,
    log,
    uniform,
)

NETWORK = from_plain(
    {
        "momentum": uniform(0.5, 0.99, when={"optimizer": "sgd"}),  # named before its parent on purpose
        "optimizer": choice("sgd", "adam", "lbfgs"),
        "lr": log(1e-4, 1.0),
        "layers": integer(1, 3),
        "width_2": choice(32, 64, when={"layers": [2, 3]}),
        "nesterov": choice(True, False, when={"optimizer": "sgd", "layers": 3}),
        "dataset": constant("digits"),
    }
)

finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=5e-324, allow_infinity=False)
whole = st.integers(-(2**53), 2**53)
values = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | finite | st.text("aZ09_ '\"{}\n\té☃", max_size=5)
)


def ordered(numbers):
    return st.tuples(numbers, numbers).filter(lambda pair: pair[0] != pair[1]).map(sorted)


parameters = st.one_of(
    ordered(finite).map(lambda ends: uniform(*ends)),
    ordered(positive).map(lambda ends: log(*ends)),
    ordered(whole).map(lambda ends: integer(*ends)),
    ordered(st.integers(1, 2**53)).map(lambda ends: integer(*ends, log=True)),
    st.lists(values, min_size=1, max_size=5, unique=True).map(lambda options: Choice(tuple(options))),
    values.map(Constant),
)


@st.composite
def spaces(draw):
    """Any space: parameters of all kinds, some conditional on values of earlier ones."""
    params = {}
    for index in range(draw(st.integers(0, 6))):
        param = draw(parameters)
        possible = [name for name, other in params.items() if isinstance(other, Choice | Constant)]
        when = {}
        for parent in draw(st.lists(st.sampled_from(possible), max_size=2, unique=True)) if possible else []:
            options = params[parent].grid(1)
            when[parent] = tuple(draw(st.lists(st.sampled_from(options), min_size=1, max_size=3)))
        params[f"p{index}"] = msgspec.structs.replace(param, when=when)
    shuffled = draw(st.permutations(list(params.items())))
    return Space(params=dict(shuffled))


@given(spaces(), st.integers(0, 2**32))
def test_what_is_sampled_belongs_to_the_space(space, seed):
    config = space.sample(Random(seed))
    space.check(config)
    for name, param in space.params.items():
        assert (name in config) == all(config.get(parent, ...) in allowed for parent, allowed in param.when.items())


@given(spaces(), st.integers(0, 2**32))
def test_a_space_survives_json(space, seed):
    again = msgspec.json.decode(msgspec.json.encode(space), type=Space)
    assert again == space
    assert list(again.params) == list(space.params)
    assert again.sample(Random(seed)) == space.sample(Random(seed))


@given(spaces(), st.integers(0, 2**32))
def test_an_encoding_has_a_fixed_length_and_stays_between_0_and_1(space, seed):
    numbers = space.encode(space.sample(Random(seed)))
    assert len(numbers) == space.dimensions
    assert all(0.0 <= number <= 1.0 for number in numbers)


@given(spaces(), st.integers(1, 3))
def test_a_grid_has_no_duplicates_and_its_announced_size(space, points):
    expected = space.grid_size(points)
    grid = list(itertools.islice(space.grid(points), 500))
    assert len(grid) == min(expected, 500)
    assert len({tuple(sorted((k, repr(v)) for k, v in config.items())) for config in grid}) == len(grid)
    for config in grid:
        space.check(config)


@given(spaces())
def test_a_space_without_ranges_is_as_large_as_its_grid(space):
    if all(isinstance(param, Choice | Constant) for param in space.params.values()):
        assert space.size == space.grid_size(1)


def test_a_log_range_samples_each_order_of_magnitude_equally():
    space, rng = from_plain({"lr": log(1e-4, 1.0)}), Random(1)
    decades = [math.floor(math.log10(space.sample(rng)["lr"])) for _ in range(4000)]
    for decade in range(-4, 0):
        assert 900 < decades.count(decade) < 1100


def test_whole_numbers_come_evenly_or_evenly_in_the_logarithm():
    rng = Random(2)
    plain = [integer(1, 4).at(rng.random()) for _ in range(4000)]
    assert all(900 < plain.count(number) < 1100 for number in (1, 2, 3, 4))
    octaves = [integer(1, 1024, log=True).at(rng.random()) for _ in range(4000)]
    assert sum(number < 32 for number in octaves) == pytest.approx(2000 * math.log(31.5 / 0.5) / math.log(32), rel=0.1)


def test_a_conditional_parameter_exists_exactly_when_its_condition_holds():
    rng = Random(3)
    for config in (NETWORK.sample(rng) for _ in range(300)):
        assert ("momentum" in config) == (config["optimizer"] == "sgd")
        assert ("width_2" in config) == (config["layers"] >= 2)
        assert ("nesterov" in config) == (config["optimizer"] == "sgd" and config["layers"] == 3)


def test_a_child_of_an_inactive_parent_is_inactive_even_if_its_condition_is_none():
    space = from_plain(
        {
            "kind": choice("a", "b"),
            "extra": choice(None, 1, when={"kind": "a"}),
            "deep": uniform(0, 1, when={"extra": [None]}),
        }
    )
    assert [config for config in space.grid(1) if config["kind"] == "b"] == [{"kind": "b"}]


def test_conditional_spaces_are_counted_without_enumeration():
    many = {f"use_{i}": choice(True, False) for i in range(40)}
    many |= {f"how_{i}": choice("x", "y", when={f"use_{i}": True}) for i in range(40)}
    assert from_plain(many).size == 3**40
    assert NETWORK.size == math.inf
    whole_network = {name: param for name, param in NETWORK.params.items() if not isinstance(param, Float)}
    assert Space(params=whole_network).size == 2 * (1 + 2 + 2) + (1 + 2 + 2 * 2)


def test_a_size_beyond_all_floats_is_infinite_beside_a_float():
    space = from_plain({**{f"n{i}": integer(1, 2**53) for i in range(30)}, "x": uniform(0, 1)})
    assert space.size == math.inf


def test_a_grid_is_round_numbers_with_both_ends():
    space = from_plain({"lr": log(1e-4, 1.0), "n": integer(1, 3), "x": uniform(0, 1)})
    assert [config["lr"] for config in space.grid(5)][::15] == [1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    assert integer(1, 1024, log=True).grid(3) == [1, 32, 1024]
    assert uniform(0, 1).grid(1) == [0.5]
    with pytest.raises(SpecError, match="points_per_range=0"):
        space.grid(0)


def test_the_last_parameter_of_a_grid_varies_fastest():
    assert [tuple(c.values()) for c in from_plain({"a": [1, 2], "b": ["x", "y"]}).grid()] == [
        (1, "x"),
        (1, "y"),
        (2, "x"),
        (2, "y"),
    ]


def test_an_encoding_tells_inactive_from_low():
    space = from_plain({"opt": ["sgd", "adam"], "m": uniform(0, 1, when={"opt": "sgd"}), "lr": log(1e-4, 1.0)})
    assert list(space.params) == ["opt", "lr", "m"]
    assert space.encode({"opt": "sgd", "m": 0.0, "lr": 1e-2}) == pytest.approx([1, 0, 0.5, 1, 0])
    assert space.encode({"opt": "adam", "lr": 1.0}) == [0, 1, 1, 0, 0]
    assert space.dimensions == 5


def test_an_empty_space_is_valid():
    assert Space().sample(Random(0)) == {}
    assert list(Space().grid()) == [{}]
    assert Space().size == 1
    assert Space().encode({}) == []


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ({"log": [1e-4, 1]}, log(1e-4, 1.0)),
        ({"log": ["1e-4", 1]}, log(1e-4, 1.0)),
        ({"float": [0, 1]}, uniform(0, 1)),
        ({"float": [1, 2], "log": True}, log(1, 2)),
        ({"uniform": [0, 1]}, uniform(0, 1)),
        ({"int": [1, 8]}, integer(1, 8)),
        ({"int": [1, 1e3]}, integer(1, 1000)),
        ({"int": [1, 1024], "log": True}, integer(1, 1024, log=True)),
        ({"integer": (1, 8), "log": False}, integer(1, 8)),
        ({"choice": ["a", 1, None]}, choice("a", 1, None)),
        ({"choice": range(3)}, choice(0, 1, 2)),
        (["a", "b"], choice("a", "b")),
        (range(3), choice(0, 1, 2)),
        (np.array([1.5, 2.5]), choice(1.5, 2.5)),
        (np.float64(2.5), constant(2.5)),
        ("digits", constant("digits")),
        (True, constant(True)),
        (None, constant(None)),
        ({"constant": 3}, constant(3)),
        ({"float": [0, 1], "when": {"parent": "a"}}, uniform(0, 1, when={"parent": "a"})),
        ({"float": [0, 1], "when": {"parent": ["a", "b"]}}, uniform(0, 1, when={"parent": ("a", "b")})),
    ],
)
def test_plain_forms_and_python_give_the_same(plain, expected):
    space = from_plain({"x": plain, "parent": ["a", "b"]})
    assert space.params["x"] == expected
    assert space == from_plain({"x": expected, "parent": choice("a", "b")})


def test_numpy_scalars_and_a_list_of_options_are_taken_as_meant():
    assert uniform(np.float32(0), np.int64(2)) == Float(0.0, 2.0)
    assert choice([32, 64]) == choice(32, 64)
    assert integer(np.int64(1), 8) == Int(1, 8)
    msgspec.json.encode(from_plain({"a": choice(np.int64(3), np.str_("x"), np.bool_(True), np.float64(2.5))}))


@pytest.mark.parametrize(
    ("plain", "complaint"),
    [
        ({"lr": uniform(1, 1)}, "space.lr: uniform(1.0, 1.0) is a range of one value"),
        ({"lr": uniform(2, 1)}, "space.lr: uniform(2.0, 1.0) is empty"),
        ({"lr": log(0, 1)}, "a log range must start above 0"),
        ({"n": integer(-1, 4, log=True)}, "a log range must start above 0"),
        ({"lr": uniform(0, math.inf)}, "bound inf"),
        ({"lr": uniform(math.nan, 1)}, "bound nan"),
        ({"lr": Float("a", 1)}, "bound 'a'"),
        ({"n": Int(0.5, 4)}, "bound 0.5"),
        ({"n": integer(0, 2**60)}, "beyond 2**53"),
        ({"c": choice()}, "space.c: a choice without options"),
        ({"c": []}, "space.c: a choice without options"),
        ({"c": choice("a", "b", "a")}, "the option 'a' twice"),
        ({"c": choice(1, True)}, "the option True twice"),
        ({"c": Choice((math.nan,))}, "space.c: nan cannot be"),
        ({"c": [[1, 2], [3]]}, "space.c: values: [1, 2] cannot be"),
        ({"c": {1, 2}}, "space.c: values: {1, 2} cannot be"),
        ({"c": "a\0b"}, "cannot be the value"),
        ({"c": "\ud800"}, "cannot be the value"),
        ({"c": 2**64}, "cannot be the value"),
        ({"c": object()}, "cannot be the value"),
        ({"learning-rate": [1]}, "'learning-rate' cannot name a parameter"),
        ({"": [1]}, "'' cannot name a parameter"),
        ({"lr": [1], "LR": [2]}, "lr and LR would be the same environment variable"),
        ({3: [1]}, "3 cannot name a parameter"),
        ({"größe": [1]}, "'größe' cannot name a parameter"),
        ({"x": {"lgo": [1, 2]}}, "space.x: 'lgo' is not a kind of parameter"),
        ({"x": {"log": 1}}, "space.x: log: 1 is not a range"),
        ({"x": {"int": [1, 2, 3]}}, "space.x: int: [1, 2, 3] is not a range"),
        ({"x": {"int": [1.5, 3]}}, "space.x: int: 1.5 is not a whole number"),
        ({"x": {"float": ["low", 3]}}, "space.x: float: 'low' is not a number"),
        ({"x": {"float": [True, 3]}}, "space.x: float: True is not a number"),
        ({"x": {"int": [1, 2], "float": [1, 2]}}, "must name one kind of parameter"),
        ({"x": {}}, "must name one kind of parameter"),
        ({"x": {"choice": [1, 2], "log": True}}, "only a range has a log scale"),
        ({"x": {"choice": [1, 2], "when": "sgd"}}, "when='sgd' does not name a parameter"),
        ([1, 2], "space=[1, 2] does not name parameters"),
        ("lr", "space='lr' does not name parameters"),
    ],
)
def test_an_invalid_space_is_refused_by_name(plain, complaint):
    with pytest.raises(SpecError) as caught:
        from_plain(plain)
    assert complaint in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("when", "complaint", "hint"),
    [
        ({"optimiser": "sgd"}, "space.x: depends on 'optimiser', which is not a parameter", "did you mean optimizer?"),
        ({"optimizer": "sdg"}, "space.x: optimizer is never 'sdg'", "choice('sgd', 'adam')"),
        ({"optimizer": []}, "one of no values", "at least one"),
        ({"lr": 0.1}, "a range of floats", "choice or a whole number"),
        ({"n": 9}, "space.x: n is never 9", "integer(1, 8)"),
        ({"n": True}, "space.x: n is never True", "integer(1, 8)"),
        ({"x": 1}, "circle", "parent"),
        ({"y": 1}, "space: x, y depend on each other in a circle", "parent"),
    ],
)
def test_a_condition_that_cannot_hold_is_refused(when, complaint, hint):
    plain = {"optimizer": ["sgd", "adam"], "lr": log(1e-4, 1), "n": integer(1, 8)}
    with pytest.raises(SpecError) as caught:
        from_plain({**plain, "x": choice(1, 2, when=when), "y": choice(1, 2, when={"x": 1})})
    assert complaint in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("change", "complaint", "hint"),
    [
        ({"lrr": 0.1}, "'lrr' is not a parameter", "did you mean lr?"),
        ({"lr": ...}, "lr is missing", "log(0.0001, 1.0)"),
        ({"lr": 2.0}, "lr=2.0 is not in the space", "log(0.0001, 1.0)"),
        ({"lr": "0.1"}, "lr='0.1' is not in the space", "log"),
        ({"layers": 2.0}, "layers=2.0 is not in the space", "integer(1, 3)"),
        ({"layers": True}, "layers=True is not in the space", "integer(1, 3)"),
        ({"optimizer": "sgdd"}, "optimizer='sgdd' is not in the space", "choice('sgd', 'adam', 'lbfgs')"),
        ({"momentum": 0.9}, "momentum=0.9 is given, but it only exists with optimizer 'sgd'", "leave it out"),
        ({"dataset": "iris"}, "dataset='iris' is not in the space", "constant('digits')"),
    ],
)
def test_a_configuration_outside_of_the_space_is_refused_with_the_reason(change, complaint, hint):
    good = {"optimizer": "adam", "lr": 0.1, "layers": 1, "dataset": "digits"}
    NETWORK.check(good)
    with pytest.raises(SpecError) as caught:
        NETWORK.check({name: value for name, value in {**good, **change}.items() if value is not ...})
    assert complaint in str(caught.value)
    assert hint in caught.value.hint


def test_true_is_not_the_number_1() -> None:
    switch, counts = choice(True, False), choice(0, 1)
    assert [switch.holds(value) for value in (True, 1, False, 0)] == [True, False, True, False]
    assert [counts.holds(value) for value in (True, 1, False, 0)] == [False, True, False, True]
    with pytest.raises(SpecError, match="switch=1 is not in the space"):
        from_plain({"switch": switch}).check({"switch": 1})
