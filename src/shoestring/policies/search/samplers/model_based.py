"""Configurations proposed by TPE from the trials so far: reads a study for `tpe`."""

from __future__ import annotations

import math
from bisect import insort
from dataclasses import dataclass
from itertools import chain, islice

from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.samplers.parzen import Row
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, SampledConfig
from shoestring.policies.search.samplers.tpe import MOST_OTHERS, as_row, evenly, good_count, suggest

Ranked = tuple[float, int, JobId, Row]
"""Smaller is better: the value, then the order of arrival."""

MOST_FAILED = 50
MOST_PENDING = 50


@dataclass(frozen=True)
class TpeSampler:
    """Values are only compared at one step, the largest at which enough trials have settled; the good ones are among
    those. Trials left behind at smaller steps count as bad, except the best there, which may still be promoted: if the
    model saw only trials that got far, all would look alike, and pruned configurations would look new. Trials that
    failed, diverged or reported nothing are bad at every step.

    Differs from BOHB in that: there the model sees the trials of its one step, and no others.

    Trials that have never settled count as bad too (a constant liar): new proposals should lie elsewhere, or a large
    cluster would try one region many times over. A trial that is paused on a rung or was promoted from one has a result
    already and does not count as pending.
    """

    startup: int = 10
    """Until so many trials can be compared, configurations are sampled at random."""
    gamma: float = 0.15
    """The share of trials that count as good, which new ones should resemble."""
    candidates: int = 24
    """How many candidates are sampled, to take the most promising."""
    random_share: float = 0.0
    """The share of trials that ignore the model, in case it is wrong."""

    def draw(self, state: RunView, job: JobId) -> SampledConfig:
        observed = state.memo(self, _Observed)
        observed.catch_up(state)
        step = observed.largest_step(self.startup)
        if step is None or (self.random_share and state.fixed_rng(f"share:{job}").random() < self.random_share):
            return RANDOM_SAMPLER.draw(state, job)
        good, others, trials = observed.split(step, self.gamma)
        others += observed.pending(state)
        rng = state.fixed_rng(f"model:{job}")
        config = suggest(state.spec.space, good, others, rng, candidates=self.candidates)
        return SampledConfig(config, f"proposed by the TPE model of {trials} trials")


class _Observed:
    """The values in `state.settled`, ranked at each step: a memo, rebuilt whenever it is missing."""

    def __init__(self) -> None:
        self._at_step: dict[int, list[Ranked]] = {}
        self._failed: list[Row] = []
        self._furthest: dict[JobId, int] = {}
        """The largest step at which each trial has settled."""
        self._read = 0

    def catch_up(self, state: RunView) -> None:
        settled, space = state.settled, state.spec.space
        sign = 1.0 if state.spec.direction == "minimize" else -1.0
        for order in range(self._read, len(settled)):
            entry = settled[order]
            if entry.status == "paused" and entry.step < entry.until_step:
                continue  # paused by another policy on its way: it will settle again
            self._furthest[entry.job] = entry.until_step
            row = as_row(space, state.jobs[entry.job].config)
            value = math.nan if entry.value is None or entry.status in ("failed", "pruned") else sign * entry.value
            if value < math.inf:
                insort(self._at_step.setdefault(entry.until_step, []), (value, order, entry.job, row))
            else:
                self._failed.append(row)
        self._read = len(settled)

    def largest_step(self, enough: int) -> int | None:
        return max((step for step, ranked in self._at_step.items() if len(ranked) >= enough), default=None)

    def split(self, step: int, gamma: float) -> tuple[list[Row], list[Row], int]:
        """The good trials at a step, the others there and left behind below, and how many there are in all."""
        ranked = self._at_step[step]
        best = good_count(len(ranked), gamma)
        others = [row for _, _, _, row in evenly(ranked, MOST_OTHERS, after=best)]
        for below, left in self._at_step.items():
            if below < step:
                some = evenly(left, MOST_OTHERS, after=good_count(len(left), gamma))
                others += [row for _, _, job, row in some if self._furthest[job] < step]
        good = [row for _, _, _, row in ranked[:best]]
        return good, evenly(others, MOST_OTHERS) + evenly(self._failed, MOST_FAILED), len(self._furthest)

    def pending(self, state: RunView) -> list[Row]:
        """The trials that have never settled: waiting ones first, the latest first."""
        jobs = chain(reversed(list(state.waiting)), (segment.job for segment in state.segments.values()))
        fresh = islice((job for job in jobs if job not in self._furthest), MOST_PENDING)
        return [as_row(state.spec.space, state.jobs[job].config) for job in fresh]
