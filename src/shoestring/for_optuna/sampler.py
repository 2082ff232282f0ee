"""`TrimTunerSampler`: Optuna runs the study, our optimiser says what to try and on how much of the data."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError, need
from shoestring.for_optuna.chooser import PLAN, Price, SamplerRequest
from shoestring.for_optuna.followed import Followed
from shoestring.for_optuna.outcomes import FRACTION, FULL, LIMITS
from shoestring.space.constraints import Constraint, parse_all
from shoestring.values import as_fraction, as_fractions, as_number

if TYPE_CHECKING:
    import optuna
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import BaseTrial, FrozenTrial, TrialState

    from shoestring.optimizer.observations import Answer
else:
    optuna = need("optuna", extra="optuna")
    BaseSampler = optuna.samplers.BaseSampler


class TrimTunerSampler(BaseSampler):
    """Chooses parameters that all trials have together, by the models of `shoestring.Optimizer`.

    Parameters that only some trials have, and those of trials before the first has finished, are drawn one by one by
    `independent_sampler`. Trials that run at the moment are taken into account, also those of other processes. The
    same seed suggests the same for the same results, unless trials run in parallel or the clock decides (a price or a
    limit on time, and trials that do not tell their seconds).
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        constraints: str | Constraint | Iterable[str | Constraint] = (),
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        fractions: Iterable[float] = (),
        usd_per_hour: Price | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        """`constraints` are limits on user attributes of trials ("latency <= 20"), on `time` and on `cost`, all of a
        run on all of the data. `constraints_func` is Optuna's: what is above 0 is broken. `usd_per_hour` is what an
        hour of a trial costs, if need be by its parameters."""
        self._wishes = SamplerRequest(
            constraints=parse_all(constraints),
            fractions=as_fractions(fractions) or (FULL,),
            usd_per_hour=usd_per_hour,
            seed=_new_seed() if seed is None else seed,
        )
        self._constraints_func = constraints_func
        self._independent_sampler = independent_sampler or optuna.samplers.TPESampler(seed=seed)
        self._followed: Followed | None = None
        self._lock = threading.RLock()

    def fraction(self, trial: BaseTrial) -> float:
        """On how much of the data this trial is to run, or ran. May be asked before or after its parameters."""
        if len(self._wishes.fractions) == 1:
            return FULL
        if isinstance(trial, optuna.trial.Trial):
            frozen = trial.study._storage.get_trial(trial._trial_id)
            if FRACTION not in frozen.user_attrs:
                self._plan(trial.study, frozen, self.infer_relative_search_space(trial.study, frozen))
                frozen = trial.study._storage.get_trial(trial._trial_id)
            return self._wishes.reading.fraction(frozen)
        return as_fraction(trial.user_attrs.get(FRACTION, FULL), FRACTION)

    def best(self, study: Study) -> Answer:
        """What to use as far as is known now: with fractions or limits, not always the trial with the best value."""
        with self._lock:
            return self._follow(study).best()

    # -- what Optuna calls, in the order of a trial's life ----------------------------------------------------------
    def reseed_rng(self) -> None:
        with self._lock:
            self._wishes = replace(self._wishes, seed=_new_seed())
            self._followed = None
        self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent_sampler.before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        with self._lock:
            return self._follow(study).common

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        plan = self._plan(study, trial, search_space)
        return {name: kind.to_external_repr(plan[name]) for name, kind in search_space.items() if name in plan}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        _refuse_several_objectives(study)
        return self._independent_sampler.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._independent_sampler.after_trial(study, trial, state, values)
        if self._constraints_func is not None and state.name in ("COMPLETE", "PRUNED"):
            limits = [as_number(value, "constraints_func") for value in self._constraints_func(trial)]
            if any(map(math.isnan, limits)):
                raise SpecError(f"constraints_func gives NaN for trial {trial.number}", hint="give a number above 0")
            study._storage.set_trial_system_attr(trial._trial_id, LIMITS, limits)
        if state.name == "COMPLETE":
            self._wishes.reading.require(trial)

    # -- inside ------------------------------------------------------------------------------------------------------
    def _plan(self, study: Study, trial: FrozenTrial, space: dict[str, BaseDistribution]) -> dict[str, float]:
        """What the trial is given, in Optuna's internal numbers: made when first asked for, and kept with the trial."""
        storage = study._storage
        with self._lock:
            known = storage.get_trial_system_attrs(trial._trial_id).get(PLAN)
            if known is not None:
                return dict(known)
            params, fraction = self._follow(study).ask(trial, space)
            if not params:  # all of the space has been run: what only some trials have may still be bettered
                params = {
                    name: self._independent_sampler.sample_independent(study, trial, name, kind)
                    for name, kind in space.items()
                    if not kind.single()
                }
            plan = {name: space[name].to_internal_repr(value) for name, value in params.items()}
            storage.set_trial_system_attr(trial._trial_id, PLAN, plan)
            if len(self._wishes.fractions) > 1 and FRACTION not in trial.user_attrs:
                # what somebody enqueued is wanted as it is, and not on what suits another configuration
                fraction = FULL if "fixed_params" in trial.system_attrs else fraction
                storage.set_trial_user_attr(trial._trial_id, FRACTION, fraction)
            return plan

    def _follow(self, study: Study) -> Followed:
        """The study with all that is known of it by now."""
        _refuse_several_objectives(study)
        if self._followed is None or self._followed.name != study.study_name:
            minimize = study.direction == optuna.study.StudyDirection.MINIMIZE
            self._followed = Followed(study.study_name, minimize, self._wishes)
        # not study.get_trials(): beside a Hyperband pruner that leaves out the trials of other brackets
        self._followed.catch_up(study._storage.get_all_trials(study._study_id, deepcopy=False))
        return self._followed

    def __getstate__(self) -> dict[str, Any]:
        """Locks cannot be copied, and what was read of a study is read again."""
        return {**self.__dict__, "_lock": None, "_followed": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


def _refuse_several_objectives(study: Study) -> None:
    if len(study.directions) > 1:
        raise SpecError(
            f"TrimTunerSampler optimises one objective, and this study has {len(study.directions)}",
            hint="keep one, and make limits of the others: constraints=['latency <= 20']",
        )


def _new_seed() -> int:
    return secrets.randbits(32)
