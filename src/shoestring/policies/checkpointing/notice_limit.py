"""The largest checkpoint that a preemption notice leaves time for, and which trials save more than that.

A notice arrives, the current step ends, the checkpoint is written; what is not written by then is lost with the
machine. The speed of writing is measured on earlier checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from shoestring.kernel.records import Job, Segment
from shoestring.kernel.view import RunView
from shoestring.units import show_bytes, show_duration

MARGIN_S = 5.0
"""Subtracted from every notice: clouds are polled for it every few seconds, and save times vary."""


def largest_checkpoint_bytes(
    notice_s: float, step_s: float, bytes_per_s: float, *, margin_s: float = MARGIN_S
) -> float:
    """What can be written between the end of the current step, at worst a whole one, and the end of the machine."""
    left_s = notice_s - step_s - margin_s
    return left_s * bytes_per_s if left_s > 0 else 0.0


@dataclass(frozen=True)
class NoticeLimit:
    """The checkpoints of a trial, judged by its latest one, against a notice."""

    notice_s: float
    step_s: float
    size_bytes: int
    save_s: float

    @property
    def largest_bytes(self) -> float:
        return largest_checkpoint_bytes(self.notice_s, self.step_s, self._bytes_per_s)

    @property
    def short_by_s(self) -> float:
        """How much longer the notice would have to be. In seconds, for an empty checkpoint takes time too."""
        return self.step_s + self.save_s + MARGIN_S - self.notice_s

    @property
    def is_kept(self) -> bool:
        return self.short_by_s <= 0

    @property
    def is_too_short_for_a_step(self) -> bool:
        """No checkpoint is small enough."""
        return self.step_s + MARGIN_S >= self.notice_s

    @property
    def allows(self) -> str:
        """What the notice allows, as a sentence."""
        notice = show_duration(self.notice_s)
        if self.is_too_short_for_a_step:
            return f"a notice of {notice} is over before a step of {show_duration(self.step_s)} can be saved"
        return f"a notice of {notice} allows checkpoints of up to {show_bytes(self.largest_bytes)}"

    @property
    def _bytes_per_s(self) -> float:
        return self.size_bytes / self.save_s if self.save_s > 0 else math.inf


def limit_of(state: RunView, job: Job, notice_s: float) -> NoticeLimit | None:
    """None until it has saved a checkpoint."""
    if job.last_save is None:
        return None
    return NoticeLimit(notice_s, _step_s(state, job), job.last_save.size_bytes, job.last_save.took_s)


def notice_of(state: RunView, segment: Segment) -> float | None:
    """The shortest notice of any of its machines; None if none can be preempted."""
    listings = [state.listings[state.leases[lease].offer] for lease in segment.leases if lease in state.leases]
    return min((listing.notice_s for listing in listings if listing.offer.spot), default=None)


def cannot_save_now(state: RunView) -> tuple[int, int]:
    """How many running trials could not save within a notice: those whose checkpoints are too large, and those whose
    steps alone take longer. For a status line that is redrawn all the time."""
    too_large = too_slow = 0
    for segment in state.segments.values():
        notice_s = notice_of(state, segment)
        limit = None if notice_s is None else limit_of(state, state.jobs[segment.job], notice_s)
        if limit is not None and not limit.is_kept:
            too_slow += limit.is_too_short_for_a_step
            too_large += not limit.is_too_short_for_a_step
    return too_large, too_slow


def notice_warnings(state: RunView) -> Iterator[str]:
    """Sentences for each length of notice, among those of the machines rented: one if steps are too long for it, one if
    checkpoints are too large. Each names the trial that is worst off, and what limits its loss."""
    rented = {*state.accounts, *(lease.offer for lease in state.leases.values())}
    for notice_s in sorted({x.notice_s for x in state.listings.values() if x.offer.spot and x.offer in rented}):
        judged = [(limit, job) for job in state.jobs.values() if (limit := limit_of(state, job, notice_s)) is not None]
        unsaved = [pair for pair in judged if not pair[0].is_kept]
        for too_slow in (True, False):
            alike = [pair for pair in unsaved if pair[0].is_too_short_for_a_step == too_slow]
            if alike:
                limit, worst = max(alike, key=lambda pair: (pair[0].short_by_s, -pair[1].number))
                yield f"{limit.allows}; {_too_much(limit, worst, len(alike) - 1)}: {_remedy(state, worst)}"


def _too_much(limit: NoticeLimit, job: Job, others: int) -> str:
    how, needs = "much", f"saves {show_bytes(limit.size_bytes)} in {show_duration(limit.save_s)}"
    if limit.is_too_short_for_a_step:
        how, needs = "long", "takes that long"
    and_others = f", {others} other{'' if others == 1 else 's'} too {how} as well" if others else ""
    return f"trial {job.number} {needs}{and_others}"


def _remedy(state: RunView, job: Job) -> str:
    every_s = job.saves_every_s
    if every_s is None or every_s >= state.spec.deadline_s:
        return "what it trained since its last save is lost with a preemption"
    return f"it relies on its saves every {show_duration(every_s)}"


def _step_s(state: RunView, job: Job) -> float:
    """A step of it where it was slowest: it may run there again. A job of a bag that reports none saves at any time."""
    if state.spec.until_exit and not job.step:
        return 0.0
    return max((pace.seconds / pace.steps for pace in state.reported_paces(job).values()), default=0.0)
