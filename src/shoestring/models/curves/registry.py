"""All curve models by name."""

from __future__ import annotations

import math

from shoestring.errors import SpecError
from shoestring.models.curves import blend as curve_blend
from shoestring.models.curves import laws as curve_laws
from shoestring.models.curves import rational as curve_rational
from shoestring.models.curves.facts import CurveStage
from shoestring.models.curves.model import CurveForecast, CurveModel, StagedModel
from shoestring.models.curves.stages import declared, detected, one_stage
from shoestring.values import did_you_mean

__all__ = ["CURVE_MODELS", "DEFAULT", "curve_model"]

DEFAULT = "blend"


def as_it_is(stretch: CurveStage, at: float) -> CurveForecast:
    """The last value: what everybody compares by who stops early without a model."""
    return CurveForecast(float(stretch.y[-1]), math.hypot(stretch.noise, stretch.drift(at)))


CURVE_MODELS: dict[str, CurveModel] = {
    "blend": StagedModel(curve_blend.blended, declared, as_it_is),
    "ensemble": StagedModel(curve_laws.carried_on, declared, as_it_is),
    "earlycurve": StagedModel(curve_rational.carried_on, detected, as_it_is),
    "slaq": StagedModel(curve_rational.carried_on, one_stage, as_it_is),
    "last_value": StagedModel(as_it_is, declared, as_it_is),
}


def curve_model(name: str = DEFAULT) -> CurveModel:
    """Raises SpecError for a name that is not known."""
    if name not in CURVE_MODELS:
        raise SpecError(f"curve={name!r} is unknown", hint=did_you_mean(name, list(CURVE_MODELS)))
    return CURVE_MODELS[name]
