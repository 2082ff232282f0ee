"""The answer of a study: the recommended configuration, and whether each constraint is measured or predicted to hold.

Derived from the journal. Where an optimizer searched, it recommends with all data so far; it predicts what was not run
on all of the data. Elsewhere the answer is the best trial that satisfies every constraint, or the nearest miss.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError
from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.view import RunView
from shoestring.policies.search.constraints.judge import measured
from shoestring.policies.search.trimtuner.problem import observed, remembered
from shoestring.policies.search.trimtuner.suggest import optimizer_of
from shoestring.space.constraints import COST, SECONDS, Constraint

if TYPE_CHECKING:
    from shoestring.optimizer.observations import Answer, ConstraintOutlook


def answer_of(state: RunState, question: Any = None) -> Answer | None:
    """None as long as nothing is known. `question` is the input of the optimizer's last suggestion, if there is one."""
    answer = None if question is None else _recommended(state, question)
    answer = answer or _measured(state)
    if answer is None:
        return None
    missing = _never_reported(state)
    if missing and not answer.feasible:
        return replace(answer, why=f"no trial has reported {' or '.join(missing)}; {answer.why}")
    return answer


def plain_answer(answer: Answer) -> dict[str, Any]:
    """For JSON."""
    return {
        "config": answer.config,
        "objective": answer.objective,
        "measured": answer.measured,
        "feasible": answer.feasible,
        "probability": answer.probability,
        "constraints": [
            {
                "constraint": str(outlook.constraint),
                "metric": outlook.constraint.metric,
                "value": outlook.value,
                "measured": outlook.measured,
                "probability": outlook.probability,
            }
            for outlook in answer.constraints
        ],
        "why": answer.why,
    }


def _recommended(state: RunState, question: Any) -> Answer | None:
    """The optimizer's recommendation, None if it has no data."""
    view = RunView(state)
    known_now = {"observations": observed(view), "pending": [], "memory": remembered(view)}
    try:
        answer = optimizer_of({**question, **known_now}).best()
    except SpecError:
        return None
    if math.isnan(answer.objective) and answer.feasible:
        return None  # of all runs on the full data the nearest to a result failed or diverged: that is no answer
    from shoestring.optimizer.observations import ConstraintOutlook

    # The only constraint it does not know is on the cost of machines that are free of charge.
    known = {outlook.constraint: outlook for outlook in answer.constraints}
    free = {
        constraint: ConstraintOutlook(constraint, 0.0, answer.measured, 1.0)
        for constraint in state.the_spec.constraints
    }
    return replace(answer, constraints=tuple((free | known).values()))


def _measured(state: RunState) -> Answer | None:
    """The best trial, or the one on all of the data that violates its constraints least."""
    spec = state.the_spec
    if state.best is not None:
        return _of_trial(spec, state.jobs[state.best])
    judged = [job for job in state.jobs.values() if job.feasible is False and not math.isnan(job.best)]
    if not judged:
        return None
    nearest = _of_trial(spec, min(judged, key=lambda job: (_miss(spec, job), spec.rank(job.best))))
    violated = ", ".join(str(outlook) for outlook in nearest.constraints if outlook.probability < 1.0)
    return replace(nearest, why=f"no trial satisfies every constraint; the nearest miss violates {violated}")


def _of_trial(spec: RunSpec, job: Job) -> Answer:
    from shoestring.optimizer.observations import Answer

    return Answer(job.config, job.best, True, tuple(_outlook(constraint, job) for constraint in spec.constraints))


def _outlook(constraint: Constraint, job: Job) -> ConstraintOutlook:
    from shoestring.optimizer.observations import ConstraintOutlook

    value = measured(job, job.seconds, job.usd).get(constraint.metric, math.nan)
    return ConstraintOutlook(constraint, value, True, 1.0 if constraint.holds(value) else 0.0)


def _miss(spec: RunSpec, job: Job) -> float:
    """By how much it violates the constraint it violates most."""
    values = measured(job, job.seconds, job.usd)
    return max(constraint.miss(values.get(constraint.metric, math.nan)) for constraint in spec.constraints)


def _never_reported(state: RunState) -> list[str]:
    """Constrained metrics that no finished trial has reported."""
    ended = [job for job in state.jobs.values() if job.status == "finished"]
    names = dict.fromkeys(constraint.metric for constraint in state.the_spec.constraints)
    return [
        name for name in names if ended and name not in (COST, SECONDS) and not any(name in job.latest for job in ended)
    ]
