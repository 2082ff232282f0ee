"""How long a trial's steps take on each machine on offer: what makes prices of fast and slow machines comparable.

Work left must not be underestimated, or a deadline is missed. So a trial's measured pace counts as it is, and where it
has become slower, as it is now. For another machine type it is scaled by the ratio that `models.speed` has learned, or
expects from their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from shoestring.kernel.records import Job, Where
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import SpeedModel, learned_speeds


class SlackSpeeds:
    """What is known in one turn."""

    def __init__(self, state: RunView) -> None:
        self._state = state

    def known(self, job: Job) -> Mapping[Where, float]:
        """Seconds per step by where it was timed, on as many slots as it has now. A trial without a pace of its own is
        expected to be like others; empty until a step of the study has been timed, unless the user has said how long a
        job takes."""
        return self._as_wide(job, own_paces(self._state, job) or {x: self.of_any_trial(x) for x in self._wheres(job)})

    def usual(self, job: Job) -> Mapping[Where, float]:
        """The same, but a trial without a pace of its own counts as the median of the others, not as their mean, which
        is the higher the less is known. Over many trials the error averages out."""
        medians = {x: self._model.median_s(None, self._listings[x[0]], x[1]) for x in self._wheres(job)}
        return self._as_wide(job, own_paces(self._state, job) or medians)

    def _wheres(self, job: Job) -> Iterable[Where]:
        if self._model.estimated and not self._model.trials:
            return [(machine, job.slots) for machine in self._listings]
        return self._model.wheres

    def _as_wide(self, job: Job, paces: Mapping[Where, float]) -> Mapping[Where, float]:
        as_wide = {where: pace for where, pace in paces.items() if where[1] == job.slots}
        return as_wide or {
            (machine, job.slots): self.seconds_per_step({(machine, slots): pace}, self._listings[machine], job.slots)
            for (machine, slots), pace in paces.items()
        }

    def timed(self, machine: str, slots: int) -> bool:
        """Was any trial timed there?"""
        return self._model.timed(machine, slots)

    def seconds_per_step(self, known: Mapping[Where, float], listing: Listing, slots: int) -> float:
        """On this machine. Where several others give an estimate, the slowest."""
        where = (listing.offer.machine, slots)
        if where in known:
            return known[where]
        here_s = self.of_any_trial(where)
        return max((pace * here_s / self.of_any_trial(other) for other, pace in known.items()), default=here_s)

    def of_any_trial(self, where: Where) -> float:
        """Of a typical trial, as the model expects it."""
        machine, slots = where
        return self._model.step_time(None, self._listings[machine], slots).expected_s

    @cached_property
    def _listings(self) -> dict[str, Listing]:
        return self._state.memo(
            "slack listings", lambda: {listing.offer.machine: listing for listing in self._state.spec.listings}
        )

    @cached_property
    def _model(self) -> SpeedModel:
        return learned_speeds(self._state)


def own_paces(state: RunView, job: Job) -> dict[Where, float]:
    """Seconds per step; if it is slower in its open segment than it was before, as there."""
    paces = {where: pace.seconds / pace.steps for where, pace in state.paces(job).items()}
    if job.segment is not None:
        segment = state.segments[job.segment]
        where, pace = (segment.machine, segment.slots), segment.pace
        if where in paces and pace.steps:
            paces[where] = max(paces[where], pace.seconds / pace.steps)
    return paces
