"""Where trials come from, for every search: configurations given by the user first, then drawn ones, and never many
more than can run, so that a bag of a hundred thousand jobs is not written down in one turn."""

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
"""All that can free a place. DropJob: a stopping rule before the search may give a waiting job up in the same turn."""

AHEAD = 2
"""How many jobs wait for each place. One would do; two keep machines busy that come in a bunch."""


def planned(spec: RunSpec) -> int:
    """How many trials a study has; what the user gave is always among them."""
    return max(spec.trials, len(spec.given))


def places(state: RunView) -> int:
    """How many jobs can run at once, if every machine is of the largest kind; where configurations name machines, each
    has its own."""
    if state.spec.space.roles:
        return state.spec.max_machines
    return max(1, state.spec.max_machines * (state.largest_slots // state.spec.slots))


def has_room(state: RunView) -> bool:
    """Could one more job run? For searches that learn as they go: whoever decides later knows more."""
    return len(state.waiting) + state.count("running") < places(state)


class Drawn(NamedTuple):
    config: Config
    origin: str
    """Where it comes from, in words: "drawn at random"."""


class Sampler(Protocol):
    """Where the configurations come from that nobody gave. Frozen and hashable like the policy it is part of."""

    def draw(self, state: RunView, job: JobId) -> Drawn: ...


@dataclass(frozen=True)
class RandomSampler:
    """The tenth trial of a seed is the same configuration, whatever the others came to."""

    def draw(self, state: RunView, job: JobId) -> Drawn:
        return Drawn(state.spec.space.sample(state.fixed_rng(f"config:{job}")), "drawn at random")


RANDOM_SAMPLER = RandomSampler()


def supplied(state: RunView, number: int, job: JobId, sampler: Sampler) -> Drawn:
    given = state.spec.given
    return Drawn(given[number], "given by the user") if number < len(given) else sampler.draw(state, job)


def given_or_drawn(state: RunView, number: int, job: JobId) -> Config:
    return supplied(state, number, job, RANDOM_SAMPLER).config


def run_all(
    state: RunView, count: int, config: Callable[[RunView, int, JobId], Config], origin: str
) -> Iterator[d.Decision]:
    """Run `count` jobs to their end, each for itself: `config` says what the job of that number is."""
    enough = AHEAD * places(state)
    while len(state.waiting) < enough and (number := len(state.jobs)) < count:
        job = state.next_job()
        where_from = "given by the user" if number < len(state.spec.given) else origin
        yield from run_whole(state, job, Drawn(config(state, number, job), where_from), f"{number + 1} of {count}")


def run_whole(state: RunView, job: JobId, drawn: Drawn, which: str) -> Iterator[d.Decision]:
    """A new job, to its end."""
    spec = state.spec
    yield d.AddJob(job=job, config=drawn.config, why=f"{which}, {drawn.origin}")
    yield d.RunJob(
        job=job,
        until_step=spec.max_steps,
        slots=spec.slots,
        why=f"to the end, step {spec.max_steps}: every job is run whole",
    )
