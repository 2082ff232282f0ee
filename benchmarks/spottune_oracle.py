"""An oracle: a placement that knows when a machine will be preempted before it rents it.

It bids just enough to be preempted late in its first hour, where prices allow that: such an hour is free of charge.
Otherwise it uses the actual cheapest step. It belongs to the benchmarks, because no policy may know the future; it
shows what refunds could save, and is no optimum: it looks only one machine ahead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Lease
from shoestring.kernel.types import LeaseId, Offer
from shoestring.kernel.view import RunView
from shoestring.market.simulated.lifetimes import HOUR_S
from shoestring.market.simulated.provider import Grant, SimulatedProvider
from shoestring.policies.placement.renting.assign import PLACEMENT_WAKERS, RETRY, request, start_waiting_jobs
from shoestring.world.sim.workload import SecondsPerStep

A_LITTLE_MORE = 1.0005
"""The margin of a bid above a price."""
START_S = 22.0
"""Start and restore."""
HURRY = 0.05
"""The value of an hour, as a share of the cheapest on-demand hour: as in `cheapest_step`."""
BETTER = 0.9
"""A move must bring the price of a step down to this share of what staying costs."""
LOOK_S = 1800.0
LOOK = "oracle:"


class Stay(NamedTuple):
    usd_per_step: float
    offer: Offer
    max_usd_per_hour: float | None
    free: bool


@dataclass(frozen=True, eq=False)
class Oracle:
    provider: SimulatedProvider
    step_s: SecondsPerStep
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        yield from self._give_back(state)
        yield from start_waiting_jobs(state)
        for job_id in list(state.waiting)[len(state.pending) :]:
            stay = self._best(state, state.jobs[job_id])
            if stay is not None:
                yield request(state, stay.offer, "it will cost least a step", stay.max_usd_per_hour)
            elif RETRY not in state.timers:
                yield d.WakeAt(name=RETRY, at=state.now + 60.0, why="nothing that lives long enough")
        if isinstance(event, e.LeaseGranted) and not self._will_be_free(state.leases[event.lease]):
            yield _look_later(state, event.lease)
        elif isinstance(event, e.TimerFired) and event.name.startswith(LOOK):
            yield from self._look(state, LeaseId(event.name.removeprefix(LOOK)))

    def _give_back(self, state: RunView) -> Iterator[d.Decision]:
        """Releases used machines, unless waiting for their preemption makes them free of charge."""
        for lease in [state.leases[lease_id] for lease_id in state.idle]:
            if lease.idle_since != lease.granted_at and not self._will_be_free(lease):
                yield d.ReleaseLease(lease=lease.id, why="its work is done or goes on elsewhere")

    def _look(self, state: RunView, lease_id: LeaseId) -> Iterator[d.Decision]:
        """Is there a better machine now for a trial on a paid one?"""
        for segment in state.segments_on(lease_id):
            job, lease = state.jobs[segment.job], state.leases[lease_id]
            best = self._best(state, job)
            if best is None or best.usd_per_step > BETTER * self._staying(state, job, lease):
                yield _look_later(state, lease_id)
            elif not segment.halting:
                yield d.HaltSegment(segment=segment.id, grace_s=state.spec.slice_s, why="steps are cheaper elsewhere")

    # -- what will be ----------------------------------------------------------------------------------------------
    def _best(self, state: RunView, job: Job) -> Stay | None:
        stays = [
            stay
            for offer in state.listings
            for bid in self._bids(offer, state.now)
            if (stay := self._stay(state, job, offer, bid)) is not None
        ]
        return min(stays, key=lambda stay: stay.usd_per_step, default=None)

    def _bids(self, offer: Offer, now: float) -> list[float | None]:
        """Just above the current price and above each higher one of the next hour; and no maximum, the default."""
        if not offer.spot:
            return [None]
        trace = self.provider.book.trace(offer)
        highest = trace.at(now)
        bids: list[float | None] = [None, A_LITTLE_MORE * highest]
        for index in range(bisect_right(trace.times, now), bisect_right(trace.times, now + HOUR_S)):
            if trace.usd_per_hour[index] > A_LITTLE_MORE * highest:
                highest = trace.usd_per_hour[index]
                bids.append(A_LITTLE_MORE * highest)
        return bids

    def _stay(self, state: RunView, job: Job, offer: Offer, bid: float | None) -> Stay | None:
        """What a step costs that is trained on this machine within its first hour; none if it trains none."""
        wish = request(state, offer, "", bid)
        granted = self.provider.grant(wish, state.now)
        if not isinstance(granted, Grant):
            return None
        taken = self.provider.revocation(wish.lease, offer, granted.at, bid)
        free = taken is not None and taken.gone_at - granted.at < HOUR_S
        lives_s = taken.gone_at - granted.at if free and taken is not None else HOUR_S
        seconds = self.step_s(job.config, state.listings[offer], job.slots)
        useful_s = min(lives_s - START_S - (state.listings[offer].notice_s if free else 0.0), _left(job) * seconds)
        steps = useful_s // seconds
        if steps < 1:
            return None
        held_s = START_S + useful_s
        usd = 0.0 if free else self._usd(offer, granted.at, granted.at + held_s)
        return Stay((usd + _hurry_usd(state, granted.at - state.now + held_s)) / steps, offer, bid, free)

    def _staying(self, state: RunView, job: Job, lease: Lease) -> float:
        seconds = self.step_s(job.config, state.listings[lease.offer], job.slots)
        held_s = min(HOUR_S, _left(job) * seconds)
        usd = self._usd(lease.offer, state.now, state.now + held_s) + _hurry_usd(state, held_s)
        return usd / max(1.0, held_s / seconds)

    def _usd(self, offer: Offer, start: float, end: float) -> float:
        return self.provider.book.trace(offer).mean(start, end) * (end - start) / HOUR_S

    def _will_be_free(self, lease: Lease) -> bool:
        if lease.granted_at is None:
            return False
        taken = self.provider.revocation(lease.id, lease.offer, lease.granted_at, lease.max_usd_per_hour)
        return taken is not None and taken.gone_at - lease.granted_at < HOUR_S


def _left(job: Job) -> int:
    return max(1, job.until_step - job.step)


def _hurry_usd(state: RunView, seconds: float) -> float:
    return HURRY * min(listing.on_demand_usd_per_hour for listing in state.listings.values()) * seconds / HOUR_S


def _look_later(state: RunView, lease: LeaseId) -> d.WakeAt:
    return d.WakeAt(name=f"{LOOK}{lease}", at=state.now + LOOK_S, about=lease, why="something better may be there")
