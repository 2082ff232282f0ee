"""Time left and total cost of a bag, estimated from the jobs that are done.

Jobs of one bag are alike, so finished ones predict the others (`models.speed.job_length`). The average cost of a second
of work so far, idle machines and losses included, is assumed for the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from shoestring.kernel.state import RunState
from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView


class Eta(NamedTuple):
    left_s: float
    """With as many parallel jobs as now."""
    total_usd: float | None
    """None where prices are unknown, or all machines are free of charge."""


def eta_of(state: RunState) -> Eta | None:
    """None until a job is done, and while none runs: it is unknown when there will be a machine."""
    from shoestring.models.speed.job_length import (
        JobLengths,
        work_left_s,
    )  # here: it loads numpy, which studies do not need

    if state.phase != "running" or not state.segments:
        return None
    view, lengths = RunView(state), JobLengths.of(RunView(state))
    running_s: list[float] = []
    whole_s: list[float] = []
    for segment in state.segments.values():
        listing = state.listings[state.leases[segment.leases[0]].offer]
        step = lengths.step_time(listing, segment.slots)
        left_s = work_left_s(view, segment.job, listing, segment.slots)
        if step is None or left_s is None:
            return None
        running_s.append(left_s)
        whole_s.append(step.expected_s * state.the_spec.max_steps)
    typical_s = math.fsum(whole_s) / len(whole_s)
    to_begin = len(state.waiting) + max(0, state.the_spec.trials - len(state.jobs))
    work_s = to_begin * typical_s + math.fsum(running_s)
    return Eta(_until_the_last_s(sorted(running_s), to_begin, typical_s), _total_usd(state, work_s))


def _until_the_last_s(running_s: list[float], to_begin: int, typical_s: float) -> float:
    """Jobs to begin go in turn to the first free machine: so many rounds for all, and one more job for some."""
    rounds, more = divmod(to_begin, len(running_s))
    last_s = running_s[-1] + rounds * typical_s
    return max(last_s, running_s[more - 1] + (rounds + 1) * typical_s) if more else last_s


def held_usd(state: RunState) -> float | None:
    """Cost so far of machines that still run: they are billed when they end. None if unknown."""
    total = 0.0
    for lease in state.leases.values():
        if lease.billed_from is not None:
            usd_per_hour = _usd_per_hour(state, lease.offer)
            if usd_per_hour is None:
                return None
            total += min(lease.reserve_usd, (state.now - lease.billed_from) / 3600 * usd_per_hour)
    return total


def _usd_per_hour(state: RunState, offer: Offer) -> float | None:
    """The current price; for a run read from its journal, where only bills are known, the average price paid."""
    if state.feed is not None:
        return state.feed.usd_per_hour(offer, state.now)
    account = state.accounts.get(offer)
    if account is None or account.seconds <= 0:
        return None
    return (account.charged_usd + account.refunded_usd) / account.seconds * 3600  # future refunds are not assumed


def _total_usd(state: RunState, work_left_s: float) -> float | None:
    held = held_usd(state)
    done_s = _WorkDone.of(RunView(state)) + math.fsum(
        max(0.0, state.now - segment.running_since)
        for segment in state.segments.values()
        if segment.running_since is not None
    )
    if held is None or done_s <= 0 or not state.the_spec.budget_usd:
        return None
    so_far_usd = state.spent_usd + held
    return so_far_usd * (1 + work_left_s / done_s)


@dataclass
class _WorkDone:
    """Seconds that finished jobs took, as a running sum: a bag of 100,000 jobs is not scanned at every redraw."""

    read: int = 0
    seconds: float = 0.0

    @staticmethod
    def of(view: RunView) -> float:
        done = view.memo("work done", _WorkDone)
        for settled in view.settled[done.read :]:
            if settled.status == "finished":
                done.seconds += math.fsum(pace.seconds for pace in view.jobs[settled.job].paces.values())
        done.read = len(view.settled)
        return done.seconds
