"""Methods by name: what `Optimizer(method=...)` and the recipes choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoestring.optimizer.methods.entropy import Fabolas, TrimTunerGp, TrimTunerGpAsPrinted
from shoestring.optimizer.methods.model_based import Ei, Eic, EicPerDollar, EicPerDollarFromTwo
from shoestring.optimizer.methods.protocol import Method, RandomMethod
from shoestring.optimizer.methods.tree_entropy import TrimTunerDt, TrimTunerDtAsPrinted
from shoestring.optimizer.methods.trimtuner import TrimTuner

METHODS: Mapping[str, Callable[[], Method]] = {
    "trimtuner": TrimTuner,
    "trimtuner_gp": TrimTunerGp,
    "trimtuner_dt": TrimTunerDt,
    "trimtuner_gp_as_printed": TrimTunerGpAsPrinted,
    "trimtuner_dt_as_printed": TrimTunerDtAsPrinted,
    "fabolas": Fabolas,
    "ei": Ei,
    "eic": Eic,
    "eic_usd": EicPerDollar,
    "eic_usd_2": EicPerDollarFromTwo,
    "random": RandomMethod,
}
