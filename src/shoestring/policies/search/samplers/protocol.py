"""Where trials come from, for every search: configurations given by the user first, then sampled ones, and never many
more than can run, so that a bag of a hundred thousand jobs is not recorded in one turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Config, JobId
from shoestring.kernel.view import RunView

SEARCH_WAKERS: frozenset[Waker] = frozenset({e.RunStarted, e.SegmentEnded, e.LeaseEnded, e.UserAsked, d.DropJob})
"""All that can free a slot. DropJob: a stopping rule may prune a waiting job earlier in the same turn."""

AHEAD = 2
"""Waiting jobs per job that can run. One would do; two keep machines busy that are granted together."""


def planned(spec: RunSpec) -> int:
    """How many trials a study has; those given by the user are always among them."""
    return max(spec.trials, len(spec.given))


def has_free_slot(state: RunView) -> bool:
    """Could one more job run? For searches that learn as they go: a later choice knows more results."""
    return len(state.waiting) + state.count("running") < state.places


class SampledConfig(NamedTuple):
    config: Config
    origin: str
    """Where it comes from, for people: "sampled at random"."""


class Sampler(Protocol):
    """Proposes the configurations that the user did not give. Frozen and hashable like the policy it is part of."""

    def draw(self, state: RunView, job: JobId) -> SampledConfig: ...


@dataclass(frozen=True)
class RandomSampler:
    """The tenth trial of a seed is the same configuration, whatever the results of the others."""

    def draw(self, state: RunView, job: JobId) -> SampledConfig:
        return SampledConfig(state.spec.space.sample(state.fixed_rng(f"config:{job}")), "sampled at random")


RANDOM_SAMPLER = RandomSampler()


def next_config(state: RunView, number: int, job: JobId, sampler: Sampler) -> SampledConfig:
    given = state.spec.given
    return SampledConfig(given[number], "given by the user") if number < len(given) else sampler.draw(state, job)


def given_or_sampled(state: RunView, number: int, job: JobId) -> Config:
    return next_config(state, number, job, RANDOM_SAMPLER).config


def run_all(
    state: RunView, count: int, config: Callable[[RunView, int, JobId], Config], origin: str
) -> Iterator[d.Decision]:
    """Run `count` jobs to max_steps, independently: `config` returns the configuration of a job number."""
    enough = AHEAD * state.places
    while len(state.waiting) < enough and (number := len(state.jobs)) < count:
        job = state.next_job()
        where_from = "given by the user" if number < len(state.spec.given) else origin
        yield from run_to_max_steps(
            state, job, SampledConfig(config(state, number, job), where_from), f"{number + 1} of {count}"
        )


def run_to_max_steps(state: RunView, job: JobId, sample: SampledConfig, which: str) -> Iterator[d.Decision]:
    """A new job, to max_steps; of a bag, until its code ends."""
    spec = state.spec
    to_the_end = f"to max_steps ({spec.max_steps}): no trial is pruned"
    yield d.AddJob(job=job, config=sample.config, why=f"trial {which}, {sample.origin}")
    yield d.RunJob(
        job=job,
        until_step=spec.max_steps,
        slots=spec.slots,
        why="until its code ends" if spec.until_exit else to_the_end,
    )
