"""How long a trial's steps take on each machine on offer: what makes prices of fast and slow machines comparable.

What a trial was timed at counts as it is. To another machine type its pace is carried over in the proportion that
`models.speed` has learned from a few trials of each type, or expects of their sizes.
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
"""A machine type, and the slots of a trial: what `Job.paces` is kept by."""

ASKED_EACH = 3
"""Trials of each machine type that are asked for their pace: more would say little more."""
MOST_ASKED = 20
"""Of those that run, and again of those that came to rest lately, so many are looked at."""
MODELS_KEPT = 8


class SlackSpeeds:
    """What is known at one turn."""

    def __init__(self, state: RunView) -> None:
        self._state = state

    def known(self, job: Job) -> Mapping[Where, float]:
        """Seconds per step by where it was timed, on as many slots as it has now. A trial without a pace of its own is
        taken to be like others; empty until a step of the study has been timed."""
        paces = own_paces(self._state, job) or self._of_others
        as_wide = {where: pace for where, pace in paces.items() if where[1] == job.slots}
        return as_wide or {
            (machine, job.slots): self.seconds_per_step({(machine, slots): pace}, self._listings[machine], job.slots)
            for (machine, slots), pace in paces.items()
        }

    def timed(self, machine: str, slots: int) -> bool:
        """Was any of the trials asked timed there?"""
        return (machine, slots) in self._of_others

    def seconds_per_step(self, known: Mapping[Where, float], listing: Listing, slots: int) -> float:
        """On this machine. Known from several others, the slowest answer."""
        where = (listing.offer.machine, slots)
        if where in known:
            return known[where]
        here_s = self.of_any_trial(where)
        return max((pace * here_s / self.of_any_trial(other) for other, pace in known.items()), default=here_s)

    @cached_property
    def _asked(self) -> dict[JobId, dict[Where, Pace]]:
        """Trials that run, then those that came to rest lately: of each machine type a few."""
        state = self._state
        asked: dict[JobId, dict[Where, Pace]] = {}
        often: dict[Where, int] = {}

        def ask(job: JobId, where: Where, pace: Pace) -> None:
            if pace.steps and pace.seconds > 0 and often.get(where, 0) < ASKED_EACH:
                often[where] = often.get(where, 0) + 1
                asked.setdefault(job, {})[where] = pace

        for segment in islice(state.segments.values(), MOST_ASKED):
            if often.get((segment.machine, segment.slots), 0) < ASKED_EACH:
                ask(segment.job, (segment.machine, segment.slots), segment.pace)
        for rest in islice(reversed(state.settled), MOST_ASKED):
            if rest.job not in asked:
                for where, pace in state.jobs[rest.job].paces.items():
                    ask(rest.job, where, pace)
        return asked

    @cached_property
    def _of_others(self) -> dict[Where, float]:
        steps: dict[Where, Pace] = {}
        for paces in self._asked.values():
            for where, pace in paces.items():
                before = steps.get(where, Pace())
                steps[where] = Pace(before.steps + pace.steps, before.seconds + pace.seconds)
        return {where: pace.seconds / pace.steps for where, pace in steps.items()}

    def of_any_trial(self, where: Where) -> float:
        """Of a trial like the others, as the model expects it: only its proportions are used."""
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
        """What was told, to a few digits, so that it stays the same for a while: models are kept by it."""
        return tuple(
            (job, tuple((where, 1 << (pace.steps.bit_length() - 1), _short(pace)) for where, pace in paces.items()))
            for job, paces in self._asked.items()
        )

    @cached_property
    def _model(self) -> tuple[SpeedModel, dict[Where, float]]:
        """And what it answered before."""
        from shoestring.models.speed.model import SpeedModel

        models: dict[object, tuple[SpeedModel, dict[Where, float]]] = self._state.memo("slack speeds", dict)
        if self._rounded not in models:
            if len(models) >= MODELS_KEPT:
                models.clear()
            seen = {
                job: {where: Pace(steps, steps * seconds) for where, steps, seconds in told}
                for job, told in self._rounded
            }
            models[self._rounded] = (SpeedModel(self._state.spec.listings, seen), {})
        return models[self._rounded]


def own_paces(state: RunView, job: Job) -> dict[Where, float]:
    """Seconds per step; where a finished stretch and the one under way differ, the slower."""
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
