"""Which configuration to try next: candidates, the best prediction for its cost, and trials ranked too early."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.search.flex.model import CurvePosterior, curve_arrays
from shoestring.policies.search.flex.resources import Resources
from shoestring.policies.search.flex.slow_trials import StepTimes
from shoestring.policies.search.samplers.protocol import SampledConfig
from shoestring.policies.search.samplers.tpe import as_row
from shoestring.space.parameters import Choice, Int, Parameter
from shoestring.space.space import Space
from shoestring.values import Config

Numbers = NDArray[np.float64]

STEPS_ASIDE = (0.07, 0.2)
"""Standard deviations of a mutation in every range, half of the rows each: local and wider."""
OTHER_OPTION = 0.2
"""How often a mutation resamples a choice."""


def anywhere(space: Space, count: int, rng: np.random.Generator) -> Numbers:
    return rng.random((count, len(space.params)))


def around(space: Space, configs: Sequence[Config], count: int, rng: np.random.Generator) -> Numbers:
    """Mutations of good configurations. Parameters they lack are sampled at random."""
    centres = np.array([_places(space, config) for config in configs])[rng.integers(len(configs), size=count)]
    steps = rng.standard_normal(centres.shape) * rng.choice(STEPS_ASIDE, size=(count, 1))
    aside = np.abs(centres + steps)
    aside = np.clip(np.where(aside > 1.0, 2.0 - aside, aside), 0.0, 1.0)
    anew, options = rng.random(centres.shape), np.array([isinstance(p, Choice) for p in space.params.values()])
    kept = np.where(rng.random(centres.shape) < OTHER_OPTION, anew, centres)
    return np.where(np.isnan(centres), anew, np.where(options, kept, aside))


def encoded(space: Space, rows: Numbers) -> Numbers:
    """`Space.encode` of the configurations at these rows, vectorised."""
    active: dict[str, NDArray[np.bool_]] = {}
    columns: list[Numbers] = []
    for (name, param), places in zip(space.params.items(), rows.T, strict=True):
        here = np.ones(len(rows), dtype=bool)
        for parent, allowed in param.when.items():
            values = [space.params[parent].at(place) for place in rows[:, list(space.params).index(parent)]]
            here &= active[parent] & np.array([value in allowed for value in values])
        active[name] = here
        if param.when and param.width:
            columns.append(here.astype(float))
        columns.extend(column * here for column in _numbers(param, places))
    return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))


def config_at(space: Space, row: Numbers) -> Config:
    config: Config = {}
    for (name, param), place in zip(space.params.items(), row.tolist(), strict=True):
        if not param.when or param.active(config):
            config[name] = param.at(place)
    return config


def _numbers(param: Parameter, places: Numbers) -> list[Numbers]:
    if isinstance(param, Choice):
        chosen = np.minimum((places * param.size).astype(int), param.size - 1)
        return [(chosen == option).astype(float) for option in range(param.size)]
    if isinstance(param, Int):
        return [_of_whole_numbers(param, places)]
    return [places] if param.width else []


def _of_whole_numbers(param: Int, places: Numbers) -> Numbers:
    if not param.log:
        numbers: Numbers = np.minimum((places * param.size).astype(int), param.size - 1) / (param.size - 1)
        return numbers
    ends = math.log(param.low - 0.5), math.log(param.high + 0.5)
    values = np.clip(np.round(np.exp((1.0 - places) * ends[0] + places * ends[1])), param.low, param.high)
    fractions: Numbers = np.log(values / param.low) / math.log(param.high / param.low)
    return fractions


def _places(space: Space, config: Config) -> list[float]:
    """The position of the configuration on each unit interval; NaN where it has none."""
    row = as_row(space, config)
    return [
        (place + 0.5) / param.size if isinstance(param, Choice) else place
        for param, place in zip(space.params.values(), row, strict=True)
    ]


ANYWHERE, AROUND, PARENTS = 144, 72, 8
"""Candidates for each new trial: uniform in the space, mutations, and the number of best trials that are mutated."""
KNOWN = 1e6
"""Penalty of a configuration that was tried before: it is chosen only if all others were too."""
SPARING = 0.3
"""Penalty for e times the usual step time: that time could be spent on other trials."""


class Proposal(NamedTuple):
    sample: SampledConfig
    score: float
    """Its upper confidence bound, less the penalty for slow steps."""


def proposed(state: RunView, job: JobId, posterior: CurvePosterior, *, step: int, kappa: float) -> Proposal:
    """For a trial that could be trained to `step`; `kappa` is the number of standard deviations added to the mean."""
    space, curves = state.spec.space, curve_arrays(state)
    rng = np.random.default_rng(state.fixed_rng(f"candidates:{job}").getrandbits(64))
    jobs = list(state.jobs.values())
    best = np.argsort(-curves.latest(posterior.since), kind="stable")[:PARENTS]
    rows = np.concatenate([anywhere(space, ANYWHERE, rng), around(space, [jobs[k].config for k in best], AROUND, rng)])
    x = encoded(space, rows)
    mean, deviation = posterior.outlook_of_new(x, step)
    silent = [state.jobs[tried].number for tried in _pending(state) if not state.jobs[tried].values]
    score = mean + kappa * deviation * posterior.room(x, curves.x[silent])
    score -= SPARING * StepTimes(curves, SpeedByWidth.of(state), state.spec.slots).log_ratio(x)
    score[_known(x, curves.x[: curves.count])] -= KNOWN
    chosen = int(np.argmax(score))
    return Proposal(SampledConfig(config_at(space, rows[chosen]), "proposed by the model"), float(score[chosen]))


def _known(x: Numbers, tried: Numbers) -> NDArray[np.bool_]:
    """Which of these have been tried before, exactly: in a small space many have."""
    before = {row.tobytes() for row in tried}
    return np.array([row.tobytes() in before for row in x])


def _pending(state: RunView) -> list[JobId]:
    return [*(segment.job for segment in state.segments.values()), *state.waiting]


class Rejudged(NamedTuple):
    job: Job
    score: float
    """Comparable with `Proposal.score`."""


def rejudged(
    state: RunView,
    posterior: CurvePosterior,
    speeds: SpeedByWidth,
    now: Resources,
    *,
    grace: int,
    alone: int,
    kappa: float,
) -> Rejudged | None:
    """The best of those paused before the step `grace`; on `alone` slots they would be trained to the end."""
    paused = [job for job in state.jobs.values() if job.status == "paused" and job.segment is None and job.values]
    early = [job for job in paused if job.step < grace and math.isfinite(job.values[-1])]
    if not early:
        return None
    more = [now.steps(speeds.step_s(job.id, alone), switching=True) for job in early]
    ends = np.array([min(state.spec.max_steps, job.step + steps) for job, steps in zip(early, more, strict=True)])
    mean, deviation = posterior.outlook(np.array([job.number for job in early]), ends)
    worker = state.spec.slots
    share = [speeds.step_s(job.id, worker) / speeds.usual_s(worker) * (grace - job.step) / grace for job in early]
    score = mean + kappa * deviation - SPARING * np.log(share)
    best = int(np.argmax(score))
    return Rejudged(early[best], float(score[best]))
