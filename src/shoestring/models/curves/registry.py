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


def last_value(stage: CurveStage, at: float) -> CurveForecast:
    """y(k) = y(last): the baseline of early stopping without a model."""
    return CurveForecast(float(stage.y[-1]), math.hypot(stage.noise, stage.drift(at)))


CURVE_MODELS: dict[str, CurveModel] = {
    "blend": StagedModel(curve_blend.blended, declared, last_value),
    "ensemble": StagedModel(curve_laws.extrapolate, declared, last_value),
    "earlycurve": StagedModel(curve_rational.extrapolate, detected, last_value),
    "slaq": StagedModel(curve_rational.extrapolate, one_stage, last_value),
    "last_value": StagedModel(last_value, declared, last_value),
}


def curve_model(name: str = DEFAULT) -> CurveModel:
    """Raises SpecError for an unknown name."""
    if name not in CURVE_MODELS:
        raise SpecError(f"curve={name!r} is unknown", hint=did_you_mean(name, list(CURVE_MODELS)))
    return CURVE_MODELS[name]
