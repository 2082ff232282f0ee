"""The Gaussian processes of the paper: its kernels of the data size, and plain values instead of logarithms.

    k = Matern52(x, x') a^2 [(1 + b p)(1 + b p') + c^2 p p']      p = (1 - t)^2 for the objective, t for what is spent

with t = ln(s / smallest) / ln(1 / smallest): FABOLAS' kernel, a line in p whose two coefficients have any covariance.
Our kernel has it as a part; here its other parts are switched off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.gp.kernel import NAMES, Frame, KernelParameters, RunPoints
from shoestring.optimizer.history import History
from shoestring.optimizer.outcome_model import Trend
from shoestring.optimizer.posterior import OutcomeModels, Posteriors
from shoestring.optimizer.transforms import Transform

_OFF = {"log_e": -10.0, "log_kappa": -10.0, "log_c0": -10.0, "slope": 0.0}
"""Hyper-parameters that the paper's kernel does not have, and values at which they have no effect."""
_HARDLY = 0.01
"""The deviation of their prior, so that they stay there."""


@dataclass(frozen=True)
class PrintedFrame(Frame):
    """k = Matern52(x, x') a^2 [(1 + b p)(1 + b p') + c^2 p p'], the paper's kernel.

    Paper: TrimTuner section III-A, kernels
    Differs from the paper: it writes s. FABOLAS' published code, to which the paper refers for details, has t. It
    matters: costs grow about as s, so their logarithm is a line in t, and a line in s is far off at full size.
    """

    falling: bool = False
    """p = (1 - t)^2, and not t: for an outcome that levels off with more and more data."""

    def prior(self) -> tuple[Numbers, Numbers]:
        means, deviations = super().prior()
        means[NAMES.index("log_a") - len(NAMES)] = 0.0  # values have unit variance, and a alone explains it
        for name, value in _OFF.items():
            place = NAMES.index(name) - len(NAMES)
            means[place], deviations[place] = value, _HARDLY
        return means, deviations

    def points(self, x: Numbers, log_s: Numbers) -> RunPoints:
        t = 1.0 - super().points(x, log_s).p
        return RunPoints(x, (1.0 - t) ** 2 if self.falling else t, log_s)


@dataclass(frozen=True)
class PrintedTrend(Trend):
    """No trend is subtracted beforehand: the kernel has it."""

    power: float = 0.0
    spread: float = 0.0
    falling: bool = False

    def frame(self, parameter: Rows, smallest: float, transform: Transform, unit: float) -> Frame:  # noqa: ARG002 - no spread
        return PrintedFrame(parameter, self.spread, smallest, self.falling)


def untransformed(values: Numbers, minimize: bool) -> Transform:
    """An objective without logarithms; accuracies still have their maximum of 1."""
    if minimize:
        return Transform(False)
    shares = bool(((values >= 0.0) & (values <= 1.0)).all())
    return Transform(False, top=1.0) if shares else Transform(False, sign=-1.0)


class PrintedPosteriors(Posteriors):
    """The paper's posteriors: of costs even where prices are known, and their median instead of the mean.

    Paper: TrimTuner section III-A, GPs
    Differs from the paper: hyper-parameters are the maximum a posteriori, with our priors.
    """

    kinds = OutcomeModels(untransformed, PrintedTrend(falling=True), PrintedTrend(), PrintedTrend(falling=True))

    def __init__(self, history: History, starts: Mapping[str, KernelParameters]) -> None:
        super().__init__(replace(history, usd_per_hour=None), starts)

    def expected_cost(self, fraction: float, rows: Rows | None = None) -> Numbers:
        cost = self.median_cost(fraction)
        return cost if rows is None else cost[rows]
