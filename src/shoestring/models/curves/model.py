"""Curve models: from a learning curve so far, predict the value at a later step, and its uncertainty.

All models have one entry point, `CurveModel.predict`, and behind it see one kind of curve: finite values to minimize,
of one stage of the training. They differ in the stage they use (`stage_rule`) and how they extrapolate it
(`extrapolate`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from shoestring.kernel.types import Direction
from shoestring.models.curves.facts import CurveStage, Numbers, diverged
from shoestring.models.curves.stages import StageRule


class CurveForecast(NamedTuple):
    """Expected value of a metric, and its standard deviation."""

    mean: float
    """Infinitely bad for a curve that diverged; NaN where nothing is known yet."""
    deviation: float


class CurveModel(Protocol):
    def predict(
        self,
        steps: Sequence[int],
        values: Sequence[float],
        at_step: int,
        direction: Direction,
        boundaries: Sequence[int] = (),
    ) -> CurveForecast:
        """`values[i]` was reported at `steps[i]`, in rising order. `boundaries` are the steps from which on something
        was changed on purpose, e.g. a learning rate lowered by its schedule: the curve before is another stage.
        """
        ...


Extrapolation = Callable[[CurveStage, float], CurveForecast]
"""Predicts a stage of a curve at a step after its end. Small values are good."""

TOO_FEW = 4
"""With fewer points than this nothing is fitted: a stage has just begun."""


@dataclass(frozen=True)
class StagedModel:
    extrapolate: Extrapolation
    stage_rule: StageRule
    fallback: Extrapolation
    """For a stage with too few points."""

    def predict(
        self,
        steps: Sequence[int],
        values: Sequence[float],
        at_step: int,
        direction: Direction,
        boundaries: Sequence[int] = (),
    ) -> CurveForecast:
        sign = 1.0 if direction == "minimize" else -1.0
        y: Numbers = sign * np.asarray(values, dtype=float)
        if len(y) == 0:
            return CurveForecast(math.nan, math.inf)
        finite = np.isfinite(y)
        if diverged(float(y[0]), float(y.min(where=finite, initial=math.inf)), float(y[-1])):
            return CurveForecast(sign * math.inf, 0.0)
        x, y = np.asarray(steps, dtype=float)[finite], y[finite]
        if at_step <= x[-1]:  # already reported
            return CurveForecast(sign * float(y[max(0, int(np.searchsorted(x, at_step, side="right")) - 1)]), 0.0)
        began = self.stage_rule(x, y, boundaries)
        _, size = math.frexp(float(np.abs(y).max()))  # models square values: 1e200 must not overflow, nor 1e-200 vanish
        stage = CurveStage.since(began, x, np.ldexp(y, -size))
        extrapolate = self.extrapolate if len(stage.y) >= TOO_FEW else self.fallback
        mean, deviation = extrapolate(stage, at_step - began + 1.0)
        return CurveForecast(sign * float(np.ldexp(mean, size)), float(np.ldexp(deviation, size)))
