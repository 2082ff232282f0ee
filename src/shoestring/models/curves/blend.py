"""Where a curve stands, and as much of what the laws foretell as they have earned on this very curve.

A curve has its own past to judge a forecast by: from its first part the laws would have foretold where it stands now.
Where that came true they get half of the say, where it did not, less, down to nothing. Never more than half: laws are
too bold about curves that are coming to rest, and a single curve's past is thin evidence. Both constants were chosen on
tables of curves that no result is reported on (`benchmarks.tables.CHOOSING`).
"""

from __future__ import annotations

import math

from shoestring.models.curves.facts import CurveStage
from shoestring.models.curves.laws import weighted_laws
from shoestring.models.curves.model import TOO_FEW, CurveForecast

MOST = 0.5
"""The laws' part in a prediction, unless the past speaks against them."""
DOUBT = 4.0
"""In variances of the noise: a foretold change that drowns in it proves nothing, and leaves the laws their part."""


def blended(stretch: CurveStage, at: float) -> CurveForecast:
    """The distance between the laws and the present is part of the doubt, whoever is believed."""
    told, spread = weighted_laws(stretch, at)
    last = float(stretch.y[-1])
    mean = last + earned(stretch, at) * (told - last)
    return CurveForecast(mean, math.hypot(spread, told - last, stretch.drift(at) / 2.0))


def earned(stretch: CurveStage, at: float) -> float:
    """The share of a change foretold earlier that came true, at most `MOST`.

    Foretold from the step that lies as far back, as a ratio, as `at` lies ahead; a curve too short for that is given
    the benefit of the doubt."""
    back = stretch.points_as_far_back(at)
    if back < TOO_FEW:
        return MOST
    told, _ = weighted_laws(CurveStage(stretch.x[:back], stretch.y[:back]), float(stretch.x[-1]))
    then = float(stretch.y[back - 1])
    foretold, happened = told - then, float(stretch.y[-1]) - then
    doubt = DOUBT * stretch.noise**2
    if foretold**2 + doubt == 0.0:
        return MOST
    return min(MOST, max(0.0, (happened * foretold + MOST * doubt) / (foretold**2 + doubt)))
