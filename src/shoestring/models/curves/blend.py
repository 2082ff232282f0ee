"""The last value, moved towards the forecast of the curve laws by as much as they proved right on this very curve.

A forecast can be checked on the curve's own past: from its first part the laws would have predicted its present value.
Where that came true they get half of the weight, where it did not, less, down to nothing. Never more than half: laws
are too bold about curves that level off, and a single curve's past is thin evidence. Both constants were chosen on
tables of curves that no result is reported on (`benchmarks.tables.CHOOSING`).
"""

from __future__ import annotations

import math

from shoestring.models.curves.facts import CurveStage
from shoestring.models.curves.laws import weighted_laws
from shoestring.models.curves.model import TOO_FEW, CurveForecast

MOST = 0.5
"""Weight of the laws in a prediction, unless the past is evidence against them."""
NOISE_VARIANCES = 4.0
"""A predicted change smaller than the noise proves nothing, and leaves the laws their weight."""


def blended(stage: CurveStage, at: float) -> CurveForecast:
    """mean = last + w (laws - last), w = `laws_weight`. |laws - last| is part of the deviation, whatever the weight."""
    predicted, spread = weighted_laws(stage, at)
    last = float(stage.y[-1])
    mean = last + laws_weight(stage, at) * (predicted - last)
    return CurveForecast(mean, math.hypot(spread, predicted - last, stage.drift(at) / 2.0))


def laws_weight(stage: CurveStage, at: float) -> float:
    """w = (happened * predicted + MOST * v) / (predicted^2 + v), clipped to [0, MOST]; v = NOISE_VARIANCES * noise^2.

    The change was predicted from the step that lies as far back, as a ratio, as `at` lies ahead; a curve too short for
    that gets `MOST`."""
    back = stage.points_as_far_back(at)
    if back < TOO_FEW:
        return MOST
    end, _ = weighted_laws(CurveStage(stage.x[:back], stage.y[:back]), float(stage.x[-1]))
    then = float(stage.y[back - 1])
    predicted, happened = end - then, float(stage.y[-1]) - then
    variance = NOISE_VARIANCES * stage.noise**2
    if predicted**2 + variance == 0.0:
        return MOST
    return min(MOST, max(0.0, (happened * predicted + MOST * variance) / (predicted**2 + variance)))
