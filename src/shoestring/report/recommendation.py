"""The answer of a study: the configuration to use, and of every limit whether it was measured or predicted to hold.

Derived from the journal. Where an optimiser searched it is asked once more, with all that is known by now; what was not
run on all of the data it predicts. Elsewhere the answer is the best trial that keeps every limit, or the nearest miss.
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
from shoestring.policies.search.limits.judge import measured
from shoestring.policies.search.trimtuner.problem import observed, remembered
from shoestring.policies.search.trimtuner.suggest import optimizer_of
from shoestring.space.constraints import COST, SECONDS, Constraint

if TYPE_CHECKING:
    from shoestring.optimizer.observations import Answer, ConstraintOutlook


def answer_of(state: RunState, question: Any = None) -> Answer | None:
    """None as long as nothing is known. `question` is the last one that the optimiser was asked, if there is one."""
    answer = None if question is None else _recommended(state, question)
    answer = answer or _measured(state)
    if answer is None:
        return None
    silent = _never_reported(state)
    if silent and not answer.feasible:
        return replace(answer, why=f"no trial has reported {' or '.join(silent)}; {answer.why}")
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
    """What the optimiser recommends, None if it has nothing to go by."""
    view = RunView(state)
    told = {"observations": observed(view), "pending": [], "memory": remembered(view)}
    try:
        answer = optimizer_of({**question, **told}).best()
    except SpecError:
        return None
    from shoestring.optimizer.observations import ConstraintOutlook

    # What it was not told of is the cost of machines that cost nothing.
    known = {outlook.constraint: outlook for outlook in answer.constraints}
    free = {limit: ConstraintOutlook(limit, 0.0, answer.measured, 1.0) for limit in state.the_spec.constraints}
    return replace(answer, constraints=tuple((free | known).values()))


def _measured(state: RunState) -> Answer | None:
    """The best trial, or the one on all of the data that misses its limits by least."""
    spec = state.the_spec
    if state.best is not None:
        return _of_trial(spec, state.jobs[state.best])
    judged = [job for job in state.jobs.values() if job.feasible is False and not math.isnan(job.best)]
    if not judged:
        return None
    nearest = _of_trial(spec, min(judged, key=lambda job: (_miss(spec, job), spec.rank(job.best))))
    broken = ", ".join(str(outlook) for outlook in nearest.constraints if outlook.probability < 1.0)
    return replace(nearest, why=f"no trial keeps every limit; the nearest miss breaks {broken}")


def _of_trial(spec: RunSpec, job: Job) -> Answer:
    from shoestring.optimizer.observations import Answer

    return Answer(job.config, job.best, True, tuple(_outlook(limit, job) for limit in spec.constraints))


def _outlook(limit: Constraint, job: Job) -> ConstraintOutlook:
    from shoestring.optimizer.observations import ConstraintOutlook

    value = measured(job, job.seconds, job.usd).get(limit.metric, math.nan)
    return ConstraintOutlook(limit, value, True, 1.0 if limit.holds(value) else 0.0)


def _miss(spec: RunSpec, job: Job) -> float:
    """By how much it breaks the limit that it breaks most."""
    values = measured(job, job.seconds, job.usd)
    return max(limit.miss(values.get(limit.metric, math.nan)) for limit in spec.constraints)


def _never_reported(state: RunState) -> list[str]:
    """Metrics with a limit that no trial at its end has told."""
    ended = [job for job in state.jobs.values() if job.status == "finished"]
    names = dict.fromkeys(limit.metric for limit in state.the_spec.constraints)
    return [
        name for name in names if ended and name not in (COST, SECONDS) and not any(name in job.latest for job in ended)
    ]
