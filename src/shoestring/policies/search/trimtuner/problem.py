"""The optimiser's input as plain data: the problem, all observations, pending trials, current prices.

Everything is read from the state of the run, so a controller that has just taken over sends the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import msgspec

from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Metrics
from shoestring.kernel.view import RunView
from shoestring.policies.placement.pinning import pinned_price
from shoestring.space.constraints import COST, SECONDS
from shoestring.space.parameters import Choice, Role
from shoestring.values import Config, Value

MEMORY = "memory"
"""Tag: the memory of the optimiser's method between two asks, as JSON."""
_PRICED: tuple[Role, ...] = ("machine", "zone", "spot")

Plain = dict[str, Any]


def question_now(state: RunView, method: str, count: int, left: int) -> Plain:
    """All that is needed to suggest `count` trials, where the run will have so many more."""
    return {
        "problem": _problem(state.spec, method, free=_is_free(state)),
        "prices": _prices(state),
        "observations": observed(state),
        "pending": [_run(job) for job in state.jobs.values() if job.wanted],
        "memory": remembered(state),
        "asks": count,
        "left": left,
    }


def observed(state: RunView) -> list[Plain]:
    """The results of the trials, in the order in which they settled, then what running trials have reported so far.

    A trial may have reported snapshots at smaller data fractions on its way: each is an observation, before its own.
    """
    rested = dict.fromkeys(rest.job for rest in state.settled)
    under_way = [job.id for job in state.jobs.values() if job.id not in rested and job.snapshots]
    return [seen for job in (*rested, *under_way) for seen in _of_trial(state, state.jobs[job])]


def remembered(state: RunView) -> Any:
    """The memory of the method after the last ask."""
    tagged = [job.tags[MEMORY] for job in state.jobs.values() if MEMORY in job.tags]
    return msgspec.json.decode(str(tagged[-1])) if tagged else None


def _of_trial(state: RunView, job: Job) -> Iterator[Plain]:
    for fraction, snapshot in sorted(job.snapshots.items()):
        values = {**_relevant(state.spec, snapshot.metrics), SECONDS: snapshot.seconds}
        if job.seconds and job.usd is not None:
            values[COST] = snapshot.seconds * job.usd / job.seconds
        yield {**_run(job), "fraction": fraction, "told": values, "killed": False}
    if not job.over:
        return
    values = _relevant(state.spec, job.latest) if job.status == "finished" else {}
    if job.status == "finished" and state.spec.metric is not None and math.isfinite(job.best):
        values[state.spec.metric] = job.best
    factor = _to_its_end(state.spec, job)
    values |= {name: value * factor for name, value in ((SECONDS, job.seconds), (COST, job.usd)) if value is not None}
    yield {**_run(job), "told": values, "killed": job.status == "pruned"}


def _to_its_end(spec: RunSpec, job: Job) -> float:
    """A trial whose code failed would have taken longer: its cost is extrapolated to max_steps."""
    return spec.max_steps / job.step if job.status == "failed" and job.step else 1.0


def _run(job: Job) -> Plain:
    return {"config": job.config, "fraction": job.fraction}


def _relevant(spec: RunSpec, metrics: Metrics) -> Metrics:
    """The objective and the constrained metrics. Non-finite values are left out: missing is the same, and JSON lacks
    them."""
    names = {spec.metric, *(constraint.metric for constraint in spec.constraints)}
    return {name: value for name, value in metrics.items() if name in names and math.isfinite(value)}


def _problem(spec: RunSpec, method: str, *, free: bool) -> Plain:
    """Where machines are free of charge, every trial satisfies a constraint on cost: it is left out."""
    constraints = [constraint for constraint in spec.constraints if not (free and constraint.metric == COST)]
    return {
        "space": msgspec.to_builtins(spec.space),
        "metric": spec.metric,
        "minimize": spec.direction == "minimize",
        "constraints": [msgspec.to_builtins(constraint) for constraint in constraints],
        "fractions": list(spec.fractions),
        "seed": spec.seed,
        "method": method,
        "free": free,
    }


def _is_free(state: RunView) -> bool:
    return all(state.usd_per_hour(offer) == 0 for offer in state.listings)


def _prices(state: RunView) -> Plain | None:
    """The hourly price of one machine for every combination that a configuration can name; None where it names none, or
    where machines are free of charge: then costs are learned from measurements."""
    roles, space = state.spec.space.roles, state.spec.space
    named = [roles[role] for role in _PRICED if role in roles]
    if not roles or _is_free(state):
        return None
    table: list[list[Value]] = []
    for values in product(*(_values(space.params[name]) for name in named)):
        named_values: Config = {name: value for name, value in zip(named, values, strict=True) if value is not None}
        usd = pinned_price(state, named_values)
        if math.isfinite(usd):
            table.append([*values, usd])
    return {"names": named, "count": roles.get("count"), "usd_per_hour": table}


def _values(param: object) -> Iterable[Value]:
    """None: an inactive parameter leaves the choice open."""
    return (*param.options, None) if isinstance(param, Choice) else (None,)
