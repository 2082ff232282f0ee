"""The benchmark of curve models scores as it says, and its network really has kinks."""

from __future__ import annotations

import math

import numpy as np

from benchmarks import earlycurve_network as network
from benchmarks.earlycurve import score
from benchmarks.earlycurve_groups import Group
from benchmarks.earlycurve_studies import studied
from shoestring.models.curves.registry import curve_model


def group(direction: str = "minimize") -> Group:
    """Three trials that never change their order, and one that diverges on its last step."""
    steps = np.arange(1, 31)
    curves = np.stack([level + 1 / steps for level in (0.3, 0.1, 0.2, 0.05)])
    curves[3, -1] = math.nan
    return Group("made up", direction, curves if direction == "minimize" else -curves, ((),) * 4)


def test_the_best_is_found_in_both_directions() -> None:
    for direction in ("minimize", "maximize"):
        told = score(curve_model("last_value"), group(direction), 0.5)
        assert not told.top1  # the one that will diverge looks best
        assert told.top3
        assert 0.0 < told.error < 0.5


def test_at_the_end_there_is_nothing_to_predict() -> None:
    told = score(curve_model("blend"), group(), 1.0)
    assert (told.error, told.top1, told.top3, told.covered) == (0.0, True, True, 1.0)


def test_a_study_of_recorded_curves_trains_the_best_to_the_end() -> None:
    outcomes = {recipe: studied(group(), recipe) for recipe in ("theta", "theta_adaptive", "random")}
    assert all(outcome.kept_best for outcome in outcomes.values())
    assert outcomes["theta_adaptive"].steps <= outcomes["theta"].steps < outcomes["random"].steps == 1.0


def test_a_learning_rate_that_falls_bends_the_curve() -> None:
    (curve,) = network.trained(network.CONFIGS[2:3])
    fall = network.FALLS[0]
    before, after = curve.values[fall - 6 : fall - 1], curve.values[fall - 1 : fall + 4]
    assert max(after) < min(before)
