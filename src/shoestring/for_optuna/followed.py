"""A study as the optimizer sees it: each trial is read once, when it finishes, whichever process ran it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError
from shoestring.for_optuna.chooser import Chooser, SamplerRequest
from shoestring.for_optuna.outcomes import FULL, optuna_constraints
from shoestring.for_optuna.translation import Distributions, fits

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from shoestring.optimizer.observations import Answer


class FollowedStudy:
    """One study. `catch_up` reads only new trials; a changed space or set of constraints makes it start over."""

    def __init__(self, name: str, minimize: bool, request: SamplerRequest) -> None:
        self.name = name
        self._minimize = minimize
        self._request = request
        self._finished: list[FrozenTrial] = []
        self._running: list[FrozenTrial] = []
        self._settled = 0
        """Trials with smaller numbers have all been read."""
        self._read: set[int] = set()
        """Numbers from there on that have been read too."""
        self._common: dict[str, BaseDistribution] | None = None
        self._constraint_names: tuple[str, ...] = ()
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
        found = {name for trial in fresh for name in optuna_constraints(trial)}
        if not found <= set(self._constraint_names):
            self._constraint_names = tuple(sorted({*self._constraint_names, *found}))
            self._chooser = None

    @property
    def common(self) -> dict[str, BaseDistribution]:
        """Parameters that all completed trials had, with the same range; none before the first has completed."""
        return {name: kind for name, kind in sorted((self._common or {}).items()) if fits(kind)}

    def ask(self, trial: FrozenTrial, space: Distributions) -> tuple[dict[str, Any], float]:
        """Parameters of this space and a data fraction for a trial.

        No parameters are returned if the space is empty or all of it has been run. While the space is unknown, the
        smallest fraction is used; where trials have no parameter in common, it would be wasted.
        """
        if not space:
            return {}, FULL if self._common is not None else self._request.fractions[0]
        others = [other for other in self._running if other.number != trial.number]
        return self._chooser_of(space).ask(others)

    def best(self) -> Answer:
        if self._common is None:
            raise SpecError("no trial has completed yet, so nothing can be recommended")
        return self._chooser_of(self.common).best()

    def _narrow(self, distributions: Distributions) -> None:
        known = distributions if self._common is None else self._common
        self._common = {name: kind for name, kind in known.items() if distributions.get(name) == kind}

    def _chooser_of(self, space: Distributions) -> Chooser:
        if self._chooser is None or self._chooser.distributions != space:
            self._chooser = Chooser(space, self._minimize, self._request, self._constraint_names)
        self._chooser.learn(self._finished)
        return self._chooser
