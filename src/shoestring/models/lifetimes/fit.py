"""Lifetime models by name, fitted to lifetimes: by likelihood, which counts released machines as censored, or by least
squares on the preempted ones, as the paper does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import optimize, special

from shoestring.errors import DataError, SpecError
from shoestring.models.lifetimes.as_printed import PrintedBathtub, PrintedParameters
from shoestring.models.lifetimes.families import (
    Bathtub,
    Exponential,
    ExponentiatedWeibull,
    GompertzMakeham,
    TwoPhase,
    Uniform,
    Weibull,
)
from shoestring.models.lifetimes.kaplan_meier import KaplanMeier
from shoestring.models.lifetimes.model import HOUR_S, Floats, LifetimeModel
from shoestring.models.lifetimes.records import LifetimeRecords
from shoestring.values import did_you_mean

Method = Literal["likelihood", "least_squares"]
METHODS: tuple[Method, ...] = ("likelihood", "least_squares")

DEFAULT, DEFAULT_WITHOUT_LIMIT = "weibull_atom", "weibull"
"""Two parameters can be fitted to a few dozen machines; the mixture's three need hundreds."""
LEAST_DEATHS = 5
"""Fewer cannot determine two or three parameters."""
DEADLINE_WINDOW_S = HOUR_S
"""A death at the limit is one within the hour from it on: what a model without a step there must account for."""
LEAST_CHANCE = 1e-9
"""Of an hour. An observed death that a model calls impossible gets this chance."""
_FAR = 12.0
"""Parameters are searched as logarithms of hours, within e^-12 to e^12."""
_HOPELESS = 1e9
"""The loss of parameters for which a model is not finite."""


@dataclass(frozen=True)
class Family:
    """How to fit a family. Parameters are unbounded numbers; `build` converts them to seconds."""

    build: Callable[[Floats, LifetimeRecords], LifetimeModel]
    starts: Callable[[LifetimeRecords], list[list[float]]]
    """Starting points of the search; the best result counts."""
    needs_limit: bool = False
    by: Method = "likelihood"


def _seconds(logarithm: float) -> float:
    return float(np.exp(logarithm)) * HOUR_S


def _mean_h(seen: LifetimeRecords) -> float:
    """Hours of exposure per death, as a logarithm: where every search for a scale begins."""
    return float(np.log(seen.seconds.sum() / seen.revoked.sum() / HOUR_S))


def _end_s(seen: LifetimeRecords) -> float:
    """An age that no machine exceeds."""
    longest = float(seen.seconds.max())
    return max(longest + 1.0, 0.0 if seen.limit_s is None else seen.limit_s + DEADLINE_WINDOW_S)


def _weibull(limited: bool) -> Family:
    return Family(
        lambda p, seen: Weibull(
            scale_s=_seconds(p[0]), shape=float(np.exp(p[1])), limit_s=seen.limit_s if limited else None
        ),
        lambda seen: [[_mean_h(seen), 0.0], [_mean_h(seen) + 2.0, -1.0]],
        needs_limit=limited,
    )


FAMILIES: Mapping[str, Family] = {
    "weibull_atom": _weibull(limited=True),
    "mixture_atom": Family(
        lambda p, seen: TwoPhase(
            early_share=float(special.expit(p[0])), early_s=_seconds(p[1]), late_s=_seconds(p[2]), limit_s=seen.limit_s
        ),
        lambda seen: [[-1.0, 0.0, _mean_h(seen) + 1.0], [0.0, 1.0, _mean_h(seen) + 2.0]],
        needs_limit=True,
    ),
    "bathtub": Family(
        lambda p, seen: Bathtub(tau1_s=_seconds(p[0]), tau2_s=_seconds(p[1]), b_s=_seconds(p[2]), end_s=_end_s(seen)),
        lambda seen: [[0.0, -0.2, _end_h(seen)], [1.0, 0.5, _end_h(seen) - 0.05]],
    ),
    "bathtub_printed": Family(
        lambda p, _seen: PrintedBathtub(
            fit=PrintedParameters(
                A=float(np.exp(p[0])), tau1_s=_seconds(p[1]), tau2_s=_seconds(p[2]), b_s=_seconds(p[3])
            )
        ),
        # typical fits according to the paper
        lambda seen: [[float(np.log(0.45)), 0.0, float(np.log(0.8)), _end_h(seen)]],
        by="least_squares",
    ),
    "exponential": Family(
        lambda p, _seen: Exponential(scale_s=_seconds(p[0])),
        lambda seen: [[_mean_h(seen)]],
    ),
    "weibull": _weibull(limited=False),
    "exponentiated_weibull": Family(
        lambda p, _seen: ExponentiatedWeibull(
            scale_s=_seconds(p[0]), shape=float(np.exp(p[1])), power=float(np.exp(p[2]))
        ),
        lambda seen: [[_mean_h(seen), 0.0, 0.0], [_mean_h(seen) + 0.5, 1.0, -1.5]],
    ),
    "gompertz_makeham": Family(
        lambda p, _seen: GompertzMakeham(chance_s=_seconds(p[0]), ageing_s=_seconds(p[1]), growth_s=_seconds(p[2])),
        lambda seen: [[_mean_h(seen), _mean_h(seen) + 4.0, _mean_h(seen) - 1.0], [_mean_h(seen) + 1.0, 8.0, 0.7]],
    ),
    "uniform": Family(
        lambda p, _seen: Uniform(high_s=_seconds(p[0])),
        lambda seen: [[float(np.log(_end_s(seen) / HOUR_S))]],
    ),
}


def _end_h(seen: LifetimeRecords) -> float:
    return float(np.log((seen.limit_s or float(seen.seconds.max())) / HOUR_S))


KAPLAN_MEIER = "kaplan_meier"
MODELS: tuple[str, ...] = (*FAMILIES, KAPLAN_MEIER)


def default_for(seen: LifetimeRecords) -> str:
    return DEFAULT_WITHOUT_LIMIT if seen.limit_s is None else DEFAULT


def suitable(seen: LifetimeRecords) -> tuple[str, ...]:
    """The models that can be fitted to these machines: some need a limit."""
    return tuple(
        name for name in MODELS if name == KAPLAN_MEIER or seen.limit_s is not None or not FAMILIES[name].needs_limit
    )


def require_known(name: str) -> None:
    if name not in MODELS:
        raise SpecError(f"lifetime model {name!r} is unknown", hint=did_you_mean(name, MODELS))


def fit(name: str, seen: LifetimeRecords, by: Method | None = None) -> LifetimeModel:
    """The model of this name that fits these machines best. `by` defaults to likelihood, but for the printed model."""
    require_known(name)
    if seen.revoked.sum() < LEAST_DEATHS:
        raise DataError(
            f"{int(seen.revoked.sum())} of {len(seen)} machines were preempted: too few to learn from",
            hint=f"at least {LEAST_DEATHS} are needed",
        )
    if name == KAPLAN_MEIER:
        if by == "least_squares":
            raise SpecError("kaplan_meier has no parameters to fit by least squares", hint="leave --by out")
        return KaplanMeier.of(seen.seconds, seen.revoked, seen.limit_s)
    family = FAMILIES[name]
    if family.needs_limit and seen.limit_s is None:
        raise SpecError(
            f"{name} needs the age at which the provider preempts every machine",
            hint=f"give it (--limit 24h), or choose a model without one, such as {DEFAULT_WITHOUT_LIMIT}",
        )
    return _least_squares(family, seen) if (by or family.by) == "least_squares" else _most_likely(family, seen)


# -- likelihood --------------------------------------------------------------------------------------------------------
def log_likelihoods(model: LifetimeModel, seen: LifetimeRecords) -> Floats:
    """Log-likelihood of each machine's lifetime, in nats; ages are in hours.

    Preempted before the limit: ln f(t). Preempted at the limit: ln of the chance to end within the hour from it on.
    Censored (not preempted): ln S(t). So a model with a step at the limit and one without can be compared.
    """
    limit_s = np.inf if seen.limit_s is None else seen.limit_s
    chance = model.reached(np.minimum(seen.seconds, limit_s))
    if np.isfinite(limit_s):
        window = float(model.reached(limit_s) - model.survival(limit_s + DEADLINE_WINDOW_S))
        chance = np.where(seen.at_limit, window, chance)
    chance = np.where(seen.by_chance, model.density(seen.seconds) * HOUR_S, chance)
    return np.log(np.maximum(chance, LEAST_CHANCE))


def _most_likely(family: Family, seen: LifetimeRecords) -> LifetimeModel:
    def loss(parameters: Floats) -> float:
        with np.errstate(all="ignore"):  # searches reach parameters that overflow
            mean = float(log_likelihoods(family.build(parameters, seen), seen).mean())
        return -mean if math.isfinite(mean) else _HOPELESS

    ends = [_searched(loss, np.array(start)) for start in family.starts(seen)]
    return family.build(min(ends, key=loss), seen)


def _searched(loss: Callable[[Floats], float], start: Floats) -> Floats:
    """Nelder-Mead: parameters are few, and a likelihood may have an edge (the end of a uniform)."""
    found = optimize.minimize(
        loss,
        np.clip(start, -_FAR, _FAR),
        method="Nelder-Mead",
        bounds=[(-_FAR, _FAR)] * len(start),
        options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 4000, "maxfev": 4000},
    )
    best: Floats = found.x
    return best


# -- least squares -----------------------------------------------------------------------------------------------------
def _least_squares(family: Family, seen: LifetimeRecords) -> LifetimeModel:
    """The cdf nearest to the share of preempted machines that were gone by each age.  Paper: SciSpot section 3.2.1

    Machines that were not preempted are left out, as in the paper, so early deaths count for too much.
    """
    ages = np.sort(seen.seconds[seen.revoked])
    shares = np.arange(1, len(ages) + 1) / len(ages)

    def residuals(parameters: Floats) -> Floats:
        with np.errstate(all="ignore"):
            gone = family.build(np.clip(parameters, -_FAR, _FAR), seen).cdf(ages)
        return np.nan_to_num(gone, nan=_HOPELESS) - shares

    found = [optimize.least_squares(residuals, start, method="dogbox") for start in family.starts(seen)]
    return family.build(np.clip(min(found, key=lambda one: float(one.cost)).x, -_FAR, _FAR), seen)
