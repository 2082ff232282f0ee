"""Stages of a curve: detected as printed, declared by the schedule, and their effect on a model."""

from __future__ import annotations

import numpy as np
import pytest

from shoestring.models.curves.registry import curve_model
from shoestring.models.curves.stages import declared, detected, one_stage


def steps_of(values: list[float]) -> np.ndarray:
    return np.arange(1.0, len(values) + 1)


def falls_twice(step: int) -> float:
    """A learning rate that is lowered at step 30: the loss falls again."""
    return 1.0 + 1 / step if step < 30 else 0.2 + 0.5 / (step - 29) ** 0.5


def test_a_jump_after_a_steady_phase_begins_a_stage() -> None:
    values = [2.0, 1.5, *[1.0] * 8, 0.4, 0.39, 0.38]
    assert detected(steps_of(values), np.array(values), ()) == 11.0
    assert detected(steps_of(values), -np.array(values), ()) == 11.0  # a maximised metric


def test_a_jump_without_a_steady_phase_does_not() -> None:
    restless = [2.0, 1.5, 1.0, 1.05, 1.0, 1.05, 1.0, 0.4, 0.39]
    assert detected(steps_of(restless), np.array(restless), ()) == 1.0
    small = [1.0] * 8 + [0.6, 0.59]
    assert detected(steps_of(small), np.array(small), ()) == 1.0
    short = [1.0, 0.1]
    assert detected(steps_of(short), np.array(short), ()) == 1.0


def test_five_changes_must_have_been_small_not_four() -> None:
    five, four = [2.0, *[1.0] * 6, 0.3], [2.0, *[1.0] * 5, 0.3]
    assert detected(steps_of(five), np.array(five), ()) == 8.0
    assert detected(steps_of(four), np.array(four), ()) == 1.0


def test_declared_boundaries_override_detected_ones() -> None:
    values = [1.0] * 10 + [0.4] * 5
    assert detected(steps_of(values), np.array(values), ()) == 11.0
    assert detected(steps_of(values), np.array(values), (5,)) == 5.0


def test_stages_are_half_open() -> None:
    """The step of the boundary is the first of the new stage, and not also the last of the old."""
    values = np.ones(20)
    assert declared(steps_of([1.0] * 20), values, (10, 20, 30)) == 20.0
    assert declared(steps_of([1.0] * 19), values[:19], (10, 20, 30)) == 10.0
    assert declared(steps_of([1.0] * 9), values[:9], (10, 20, 30)) == one_stage(steps_of([1.0] * 9), values[:9], ())


@pytest.mark.parametrize("name", ["earlycurve", "ensemble"])
def test_a_declared_boundary_halves_the_error_after_a_fall(name: str) -> None:
    values, end = [falls_twice(step) for step in range(1, 71)], falls_twice(100)
    one = curve_model(name).predict(range(1, 71), values, 100, "minimize").mean
    two = curve_model(name).predict(range(1, 71), values, 100, "minimize", (30,)).mean
    assert abs(two - end) < 0.5 * abs(one - end)


def test_the_blend_trusts_the_laws_less_after_an_undeclared_fall() -> None:
    """Before the fall the laws predicted something else: they lose their weight, and a boundary restores it."""
    values, end = [falls_twice(step) for step in range(1, 71)], falls_twice(100)

    def off(name: str, boundaries: tuple[int, ...] = ()) -> float:
        return abs(curve_model(name).predict(range(1, 71), values, 100, "minimize", boundaries).mean - end)

    assert off("blend") < 0.5 * off("ensemble")
    assert off("blend", (30,)) < off("blend")


def test_slaq_knows_no_stages() -> None:
    values = [falls_twice(step) for step in range(1, 71)]
    slaq = curve_model("slaq")
    assert slaq.predict(range(1, 71), values, 100, "minimize", (30,)) == slaq.predict(
        range(1, 71), values, 100, "minimize"
    )


def test_without_stages_earlycurve_is_slaq() -> None:
    values = [0.2 + step**-0.5 for step in range(1, 41)]
    both = [curve_model(name).predict(range(1, 41), values, 60, "minimize") for name in ("earlycurve", "slaq")]
    assert both[0] == both[1]


@pytest.mark.parametrize("name", ["earlycurve", "ensemble", "blend", "last_value"])
def test_a_stage_that_has_just_begun_keeps_its_last_value(name: str) -> None:
    values = [1.0 + 1 / step for step in range(1, 31)] + [0.5, 0.45]
    assert curve_model(name).predict(range(1, 33), values, 100, "minimize", (31,)).mean == 0.45


def test_a_boundary_ahead_changes_nothing() -> None:
    values = [0.2 + step**-0.5 for step in range(1, 41)]
    assert curve_model().predict(range(1, 41), values, 100, "minimize", (70,)) == curve_model().predict(
        range(1, 41), values, 100, "minimize"
    )
