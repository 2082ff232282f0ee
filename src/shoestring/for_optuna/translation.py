"""An Optuna search space as a space of the optimizer, and values in both directions.

Optuna's parameters may have any text as a name and any objects as choices, and its ranges may have steps. The
optimizer's have none of these: here names are p0, p1, ..., a choice is its index, and a range with steps is the number
of steps from its lower end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shoestring.errors import need
from shoestring.space.parameters import MOST_EXACT, Choice, Constant, Float, Int, Parameter
from shoestring.space.space import Space
from shoestring.values import Config, Value

if TYPE_CHECKING:
    from optuna import distributions as kinds
    from optuna.distributions import BaseDistribution
else:
    kinds = need("optuna.distributions", extra="optuna")

Distributions = Mapping[str, "BaseDistribution"]


class Translation:
    """Between parameters of a study and configurations of the optimizer."""

    def __init__(self, distributions: Distributions) -> None:
        self.distributions = dict(distributions)
        self._inner_name = {name: f"p{number}" for number, name in enumerate(self.distributions)}
        self.space = Space(
            params={self._inner_name[name]: _parameter(kind) for name, kind in self.distributions.items()}
        )

    def config(self, params: Mapping[str, Any]) -> Config | None:
        """The configuration that these parameters are; None if one is absent or lies outside of its range."""
        config: Config = {}
        for name, kind in self.distributions.items():
            value = _inward(kind, params[name]) if name in params else None
            if value is None or not self.space.params[self._inner_name[name]].holds(value):
                return None
            config[self._inner_name[name]] = value
        return config

    def params(self, config: Config) -> dict[str, Any]:
        """The parameters that a configuration stands for."""
        return {name: _outward(kind, config[self._inner_name[name]]) for name, kind in self.distributions.items()}


def fits(kind: BaseDistribution) -> bool:
    """Can the optimizer choose a value of it? Not of infinite ranges and of huge integers."""
    if isinstance(kind, kinds.CategoricalDistribution):
        return True
    if isinstance(kind, kinds.IntDistribution):
        return max(abs(kind.low), abs(kind.high)) <= MOST_EXACT
    return isinstance(kind, kinds.FloatDistribution) and math.isfinite(kind.low) and math.isfinite(kind.high)


def _parameter(kind: BaseDistribution) -> Parameter:
    if kind.single():
        return Constant(0)
    match kind:
        case kinds.FloatDistribution(step=None):
            return Float(kind.low, kind.high, kind.log)
        case kinds.FloatDistribution(step=float(step)):
            return Int(0, round((kind.high - kind.low) / step))
        case kinds.IntDistribution(step=1):
            return Int(kind.low, kind.high, kind.log)
        case kinds.IntDistribution():
            return Int(0, (kind.high - kind.low) // kind.step)
        case kinds.CategoricalDistribution():
            return Choice(tuple(range(len(kind.choices))))
    raise TypeError(f"{kind!r} is not an Optuna distribution")


def _inward(kind: BaseDistribution, value: Any) -> Value:
    """An Optuna value as a value of the optimizer, or None if it is not in this distribution."""
    try:
        internal = kind.to_internal_repr(value)
    except ValueError:
        return None
    if kind.single():
        return 0 if internal == kind.to_internal_repr(_outward(kind, 0)) else None
    match kind:
        case kinds.FloatDistribution(step=None):
            return internal
        case kinds.FloatDistribution(step=float(step)):
            return _whole((internal - kind.low) / step)
        case kinds.IntDistribution(step=1):
            return _whole(internal)
        case kinds.IntDistribution():
            return _whole((internal - kind.low) / kind.step)
    return int(internal)


def _outward(kind: BaseDistribution, value: Value) -> Any:
    match kind:
        case kinds.CategoricalDistribution():
            return kind.choices[int(value or 0)]
        case kinds.FloatDistribution() | kinds.IntDistribution() if kind.single():
            return kind.low
        case kinds.FloatDistribution(step=float(step)):
            return min(kind.low + int(value or 0) * step, kind.high)
        case kinds.IntDistribution() if kind.step > 1:
            return kind.low + int(value or 0) * kind.step
    return value


def _whole(number: float) -> int | None:
    """Steps from the lower end. Steps such as 0.1 have no exact double, so nearly whole is whole."""
    nearest = round(number)
    return nearest if abs(number - nearest) < 1e-6 else None
