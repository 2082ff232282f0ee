"""A study as the optimiser sees it: trials are read once each, as they finish, whoever ran them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError
from shoestring.for_optuna.chooser import Chooser, SamplerRequest
from shoestring.for_optuna.outcomes import FULL, optuna_limits
from shoestring.for_optuna.translation import Distributions, fits

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from shoestring.optimizer.observations import Answer


class Followed:
    """One study. `catch_up` costs what is new; only a space or a set of limits that changes makes it begin anew."""

    def __init__(self, name: str, minimize: bool, wishes: SamplerRequest) -> None:
        self.name = name
        self._minimize = minimize
        self._wishes = wishes
        self._finished: list[FrozenTrial] = []
        self._running: list[FrozenTrial] = []
        self._settled = 0
        """Trials with smaller numbers have all been read."""
        self._read: set[int] = set()
        """Numbers from there on that have been read too."""
        self._common: dict[str, BaseDistribution] | None = None
        self._optunas_limits: tuple[str, ...] = ()
        self._chooser: Chooser | None = None

    def catch_up(self, trials: Sequence[FrozenTrial]) -> None:
        """`trials` are all of the study, by number."""
        ahead = [trial for trial in trials[self._settled :] if trial.number not in self._read]
        self._running = [trial for trial in ahead if trial.state.name == "RUNNING"]
        fresh = [trial for trial in ahead if trial.state.is_finished()]
        for trial in fresh:
            self._read.add(trial.number)
            if trial.state.name == "COMPLETE":
                self._narrow(trial.distributions)
        while self._settled in self._read:
            self._read.remove(self._settled)
            self._settled += 1
        self._finished += fresh
        found = {name for trial in fresh for name in optuna_limits(trial)}
        if not found <= set(self._optunas_limits):
            self._optunas_limits = tuple(sorted({*self._optunas_limits, *found}))
            self._chooser = None

    @property
    def common(self) -> dict[str, BaseDistribution]:
        """Parameters that all trials had that came to their end, with the same range; none before the first did."""
        return {name: kind for name, kind in sorted((self._common or {}).items()) if fits(kind)}

    def ask(self, trial: FrozenTrial, space: Distributions) -> tuple[dict[str, Any], float]:
        """Parameters of this space and a fraction of the data for a trial.

        No parameters are given if the space is empty or all of it has been run. While nothing is known of the space, a
        small fraction is where to begin; where trials have nothing in common to learn about, it would be wasted.
        """
        if not space:
            return {}, FULL if self._common is not None else self._wishes.fractions[0]
        others = [other for other in self._running if other.number != trial.number]
        return self._chooser_of(space).ask(others)

    def best(self) -> Answer:
        if self._common is None:
            raise SpecError("no trial has come to its end yet, so nothing can be recommended")
        return self._chooser_of(self.common).best()

    def _narrow(self, distributions: Distributions) -> None:
        known = distributions if self._common is None else self._common
        self._common = {name: kind for name, kind in known.items() if distributions.get(name) == kind}

    def _chooser_of(self, space: Distributions) -> Chooser:
        if self._chooser is None or self._chooser.distributions != space:
            self._chooser = Chooser(space, self._minimize, self._wishes, self._optunas_limits)
        self._chooser.learn(self._finished)
        return self._chooser
