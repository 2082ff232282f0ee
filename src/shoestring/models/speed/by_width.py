"""Seconds per step of a trial by its width: for searches, which choose slots and leave the machine to placement."""

from __future__ import annotations

from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import SpeedModel, learned_speeds


class SpeedByWidth:
    """On the machine type that a trial ran on last; for one that never ran, the type of most others."""

    def __init__(self, view: RunView, model: SpeedModel) -> None:
        self._view, self._model = view, model

    @staticmethod
    def of(view: RunView) -> SpeedByWidth:
        return SpeedByWidth(view, learned_speeds(view))

    def knows(self, job: JobId) -> bool:
        """Has it reported a step?"""
        return job in self._model.trials

    def step_s(self, job: JobId, slots: int) -> float:
        if job not in self._model.trials:
            return self.usual_s(slots)
        rented = self._view.jobs[job].rented
        listing = self._model.usual_listing if rented is None else self._view.listings[rented]
        return self._model.median_s(job, listing, slots)

    def usual_s(self, slots: int) -> float:
        """Of a trial that was never timed."""
        return self._model.usual_s(self._model.usual_listing, slots)

    def speedup(self, slots: int) -> float:
        """How many times faster a trial is on so many slots than on those of one worker."""
        return self._model.speedup(self._model.usual_listing, slots)
