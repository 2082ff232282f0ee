"""`TrimTunerSampler`: Optuna runs the study, our optimizer suggests parameters and data fractions."""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError, need
from shoestring.for_optuna.chooser import PLAN, Price, SamplerRequest
from shoestring.for_optuna.followed import FollowedStudy
from shoestring.for_optuna.outcomes import CONSTRAINTS, FRACTION, FULL
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
    """Samples the parameters that all trials have in common jointly, by the models of `shoestring.Optimizer`.

    Parameters that only some trials have, and those of trials before the first has finished, are sampled one by one by
    `independent_sampler`. Running trials are taken into account, also those of other processes. The same seed gives the
    same suggestions for the same results, unless trials run in parallel or the clock matters (a price or a constraint
    on time, and trials that do not report their seconds).
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
        """`constraints` are on user attributes of trials ("latency <= 20"), on `time` and on `cost`, all of a full-data
        run. `constraints_func` is Optuna's: a value above 0 is a violation. `usd_per_hour` is the price of a trial, a
        number or a function of its parameters."""
        self._request = SamplerRequest(
            constraints=parse_all(constraints),
            fractions=as_fractions(fractions) or (FULL,),
            usd_per_hour=usd_per_hour,
            seed=_new_seed() if seed is None else seed,
        )
        self._constraints_func = constraints_func
        self._independent_sampler = independent_sampler or optuna.samplers.TPESampler(seed=seed)
        self._followed: FollowedStudy | None = None
        self._lock = threading.RLock()

    def fraction(self, trial: BaseTrial) -> float:
        """The data fraction of this trial. May be called before or after its parameters are suggested."""
        if len(self._request.fractions) == 1:
            return FULL
        if isinstance(trial, optuna.trial.Trial):
            frozen = trial.study._storage.get_trial(trial._trial_id)
            if FRACTION not in frozen.user_attrs:
                self._plan(trial.study, frozen, self.infer_relative_search_space(trial.study, frozen))
                frozen = trial.study._storage.get_trial(trial._trial_id)
            return self._request.reading.fraction(frozen)
        return as_fraction(trial.user_attrs.get(FRACTION, FULL), FRACTION)

    def best(self, study: Study) -> Answer:
        """The recommendation so far: with fractions or constraints, not always the trial with the best value."""
        with self._lock:
            return self._follow(study).best()

    # -- what Optuna calls, in the order of a trial's lifecycle -----------------------------------------------------
    def reseed_rng(self) -> None:
        with self._lock:
            self._request = replace(self._request, seed=_new_seed())
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
                raise SpecError(
                    f"constraints_func returns NaN for trial {trial.number}", hint="return a number above 0"
                )
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, limits)
        if state.name == "COMPLETE":
            self._request.reading.require(trial)

    # -- inside ------------------------------------------------------------------------------------------------------
    def _plan(self, study: Study, trial: FrozenTrial, space: dict[str, BaseDistribution]) -> dict[str, float]:
        """The trial's parameters in Optuna's internal representation: made at the first call, and stored with it."""
        storage = study._storage
        with self._lock:
            known = storage.get_trial_system_attrs(trial._trial_id).get(PLAN)
            if known is not None:
                return dict(known)
            params, fraction = self._follow(study).ask(trial, space)
            if not params:  # all of the space has been run: parameters that only some trials have may still improve
                params = {
                    name: self._independent_sampler.sample_independent(study, trial, name, kind)
                    for name, kind in space.items()
                    if not kind.single()
                }
            plan = {name: space[name].to_internal_repr(value) for name, value in params.items()}
            storage.set_trial_system_attr(trial._trial_id, PLAN, plan)
            if len(self._request.fractions) > 1 and FRACTION not in trial.user_attrs:
                # an enqueued trial runs as requested, and not on a fraction that suits another configuration
                fraction = FULL if "fixed_params" in trial.system_attrs else fraction
                storage.set_trial_user_attr(trial._trial_id, FRACTION, fraction)
            return plan

    def _follow(self, study: Study) -> FollowedStudy:
        """The study with all trials so far."""
        _refuse_several_objectives(study)
        if self._followed is None or self._followed.name != study.study_name:
            minimize = study.direction == optuna.study.StudyDirection.MINIMIZE
            self._followed = FollowedStudy(study.study_name, minimize, self._request)
        # not study.get_trials(): with a Hyperband pruner that leaves out the trials of other brackets
        self._followed.catch_up(study._storage.get_all_trials(study._study_id, deepcopy=False))
        return self._followed

    def __getstate__(self) -> dict[str, Any]:
        """Locks cannot be pickled, and the study is read again."""
        return {**self.__dict__, "_lock": None, "_followed": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())


def _refuse_several_objectives(study: Study) -> None:
    if len(study.directions) > 1:
        raise SpecError(
            f"TrimTunerSampler optimizes one objective, and this study has {len(study.directions)}",
            hint="keep one, and make constraints of the others: constraints=['latency <= 20']",
        )


def _new_seed() -> int:
    return secrets.randbits(32)
