"""How long a trial's steps take on each machine on offer: what makes prices of fast and slow machines comparable.

A trial's measured pace counts as it is. For another machine type it is scaled by the ratio that `models.speed` has
learned from a few trials of each type, or expects from their sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from shoestring.kernel.records import Job, Pace
from shoestring.kernel.types import JobId, Listing
from shoestring.kernel.view import RunView

if TYPE_CHECKING:
    from shoestring.models.speed.model import SpeedModel

Where = tuple[str, int]
"""A machine type, and the slots of a trial: the key of `Job.paces`."""

SAMPLED_EACH = 3
"""Trials of each machine type whose pace is used: more would add little."""
MOST_SAMPLED = 20
"""This many running trials are looked at, and as many of those that settled lately."""
MODELS_KEPT = 8


class SlackSpeeds:
    """What is known in one turn."""

    def __init__(self, state: RunView) -> None:
        self._state = state

    def known(self, job: Job) -> Mapping[Where, float]:
        """Seconds per step by where it was timed, on as many slots as it has now. A trial without a pace of its own is
        assumed to be like others; empty until a step of the study has been timed."""
        paces = own_paces(self._state, job) or self._of_others
        as_wide = {where: pace for where, pace in paces.items() if where[1] == job.slots}
        return as_wide or {
            (machine, job.slots): self.seconds_per_step({(machine, slots): pace}, self._listings[machine], job.slots)
            for (machine, slots), pace in paces.items()
        }

    def timed(self, machine: str, slots: int) -> bool:
        """Was any of the sampled trials timed there?"""
        return (machine, slots) in self._of_others

    def seconds_per_step(self, known: Mapping[Where, float], listing: Listing, slots: int) -> float:
        """On this machine. Where several others give an estimate, the slowest."""
        where = (listing.offer.machine, slots)
        if where in known:
            return known[where]
        here_s = self.of_any_trial(where)
        return max((pace * here_s / self.of_any_trial(other) for other, pace in known.items()), default=here_s)

    @cached_property
    def _sampled(self) -> dict[JobId, dict[Where, Pace]]:
        """Running trials, then those that settled lately: a few of each machine type."""
        state = self._state
        sampled: dict[JobId, dict[Where, Pace]] = {}
        counts: dict[Where, int] = {}

        def add(job: JobId, where: Where, pace: Pace) -> None:
            if pace.steps and pace.seconds > 0 and counts.get(where, 0) < SAMPLED_EACH:
                counts[where] = counts.get(where, 0) + 1
                sampled.setdefault(job, {})[where] = pace

        for segment in islice(state.segments.values(), MOST_SAMPLED):
            if counts.get((segment.machine, segment.slots), 0) < SAMPLED_EACH:
                add(segment.job, (segment.machine, segment.slots), segment.pace)
        for settled in islice(reversed(state.settled), MOST_SAMPLED):
            if settled.job not in sampled:
                for where, pace in state.jobs[settled.job].paces.items():
                    add(settled.job, where, pace)
        return sampled

    @cached_property
    def _of_others(self) -> dict[Where, float]:
        steps: dict[Where, Pace] = {}
        for paces in self._sampled.values():
            for where, pace in paces.items():
                before = steps.get(where, Pace())
                steps[where] = Pace(before.steps + pace.steps, before.seconds + pace.seconds)
        return {where: pace.seconds / pace.steps for where, pace in steps.items()}

    def of_any_trial(self, where: Where) -> float:
        """Of a typical trial, as the model expects it: only ratios of it are used."""
        model, expected_s = self._model
        if where not in expected_s:
            machine, slots = where
            expected_s[where] = model.step_time(None, self._listings[machine], slots).expected_s
        return expected_s[where]

    @cached_property
    def _listings(self) -> dict[str, Listing]:
        return {listing.offer.machine: listing for listing in self._state.spec.listings}

    @cached_property
    def _rounded(self) -> tuple[tuple[JobId, tuple[tuple[Where, int, float], ...]], ...]:
        """The measured paces to a few digits, so that they rarely change: the key of the cached models."""
        return tuple(
            (job, tuple((where, 1 << (pace.steps.bit_length() - 1), _short(pace)) for where, pace in paces.items()))
            for job, paces in self._sampled.items()
        )

    @cached_property
    def _model(self) -> tuple[SpeedModel, dict[Where, float]]:
        """The model, and its cached predictions."""
        from shoestring.models.speed.model import SpeedModel

        models: dict[object, tuple[SpeedModel, dict[Where, float]]] = self._state.memo("slack speeds", dict)
        if self._rounded not in models:
            if len(models) >= MODELS_KEPT:
                models.clear()
            observed = {
                job: {where: Pace(steps, steps * seconds) for where, steps, seconds in rounded}
                for job, rounded in self._rounded
            }
            models[self._rounded] = (SpeedModel(self._state.spec.listings, observed), {})
        return models[self._rounded]


def own_paces(state: RunView, job: Job) -> dict[Where, float]:
    """Seconds per step; where finished segments and the open one differ, the slower."""
    paces = {
        where: pace.seconds / pace.steps for where, pace in job.paces.items() if pace.steps > 0 and pace.seconds > 0
    }
    if job.segment is not None:
        segment = state.segments[job.segment]
        pace, where = segment.pace, (segment.machine, segment.slots)
        if pace.steps > 0 and pace.seconds > 0:
            paces[where] = max(paces.get(where, 0.0), pace.seconds / pace.steps)
    return paces


def _short(pace: Pace) -> float:
    return float(f"{pace.seconds / pace.steps:.2g}")
