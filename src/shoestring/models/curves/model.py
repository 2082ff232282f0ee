"""What a curve model is: it is shown a learning curve so far and says what it comes to at a later step, and how sure.

All models have one door, `CurveModel.predict`, and behind it see one kind of curve: values to be made small, finite,
of one stage of the training. What differs is which stage they look at (`stage_rule`) and how they carry it on
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
    """What a metric is expected to be, and how far off that may be (one standard deviation)."""

    mean: float
    """Infinitely bad for a curve that diverged; not a number where nothing is known yet."""
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
        was changed on purpose, a learning rate lowered by its schedule: what the curve did before is another stage.
        """
        ...


Extrapolation = Callable[[CurveStage, float], CurveForecast]
"""How a stretch of a curve goes on to a place after its end. Small values are good."""

TOO_FEW = 4
"""With fewer points than this nothing is fitted: a stage has just begun."""


@dataclass(frozen=True)
class StagedModel:
    extrapolate: Extrapolation
    stage_rule: StageRule
    fallback: Extrapolation
    """For a stage of which there are too few points."""

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
        if at_step <= x[-1]:  # it is on record
            return CurveForecast(sign * float(y[max(0, int(np.searchsorted(x, at_step, side="right")) - 1)]), 0.0)
        began = self.stage_rule(x, y, boundaries)
        _, size = math.frexp(float(np.abs(y).max()))  # models square values: 1e200 must not overflow, nor 1e-200 vanish
        stretch = CurveStage.since(began, x, np.ldexp(y, -size))
        carry_on = self.extrapolate if len(stretch.y) >= TOO_FEW else self.fallback
        mean, deviation = carry_on(stretch, at_step - began + 1.0)
        return CurveForecast(sign * float(np.ldexp(mean, size)), float(np.ldexp(deviation, size)))
