"""Searches that train every trial to max_steps: random, grid, the configurations of a bag, and any sampler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import Config, JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.samplers.protocol import (
    SEARCH_WAKERS,
    Sampler,
    given_or_sampled,
    has_free_slot,
    next_config,
    planned,
    run_all,
    run_to_max_steps,
)


@dataclass(frozen=True)
class RandomSearch:
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase == "running":
            yield from run_all(state, planned(state.spec), given_or_sampled, "sampled at random")


@dataclass(frozen=True)
class Grid:
    points: int = 5
    """Grid points per range; a choice contributes all its options."""
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase == "running":
            count = state.memo((self, "count"), lambda: state.spec.space.grid_size(self.points))
            yield from run_all(state, len(state.spec.given) + count, self._config, "next grid point")

    def _config(self, state: RunView, number: int, job: JobId) -> Config:  # noqa: ARG002
        given = state.spec.given
        if number < len(given):
            return given[number]
        return state.memo((self, "walk"), lambda: _Walk(state, self.points)).at(number - len(given))


class _Walk:
    """A grid is only iterated forwards: the iterator is kept between turns and rebuilt if it is lost."""

    def __init__(self, state: RunView, points: int) -> None:
        self._space, self._points = state.spec.space, points
        self._configs = self._space.grid(points)
        self._next = 0

    def at(self, index: int) -> Config:
        if index < self._next:
            self._configs, self._next = self._space.grid(self._points), 0
        ahead = index - self._next
        self._next = index + 1
        return next(islice(self._configs, ahead, None))


@dataclass(frozen=True)
class Given:
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase == "running":
            yield from run_all(state, len(state.spec.given), given_or_sampled, "")


@dataclass(frozen=True)
class Sampled:
    """Unlike random search it samples no trial before a slot is free: later samples know more results."""

    sampler: Sampler
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        count = planned(state.spec)
        while state.phase == "running" and has_free_slot(state) and (number := len(state.jobs)) < count:
            job = state.next_job()
            yield from run_to_max_steps(
                state, job, next_config(state, number, job, self.sampler), f"{number + 1} of {count}"
            )
