"""The on-demand machine that a trial's slack is computed for: the cheapest per step on which it is still in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shoestring.kernel.records import Job, Where
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.policies.placement.on_demand import on_demand_offers
from shoestring.policies.placement.renting.facts import free_usd, per_slot
from shoestring.policies.placement.renting.rent import Ranked
from shoestring.policies.placement.slack.guarantee import Switching
from shoestring.policies.placement.slack.speed import SlackSpeeds


class Need(NamedTuple):
    """Steps that should be done, and the seconds there are for them."""

    steps: float
    room_s: float
    switching: Switching
    """What changing machines, and starting trials, takes by this account."""
    known: Mapping[Where, float]
    """Seconds per step by where a trial was timed."""
    as_expected: bool = False
    """A machine type on which no trial was timed counts as fast as expected, not as slow as the slowest known."""
    whole: bool = True
    """With all that queues."""


@dataclass(frozen=True)
class OnDemandFallback:
    offers: Ranked
    """All on-demand offers that fit, best first. Empty where only spot machines are on offer."""
    seconds_per_step: float
    """On the first of them, as the need that it meets counts it."""
    usd_per_hour: float
    """Dollars for an hour of work at that pace."""
    meets: Need | None
    """The first need that a machine meets; None if it is too late for all."""


@dataclass(frozen=True)
class _Candidate:
    listing: Listing
    offers: Ranked
    safe_s: float
    expected_s: float
    usd_per_step: float
    timed: bool

    def seconds_per_step(self, need: Need | None) -> float:
        return self.expected_s if need is not None and need.as_expected else self.safe_s


def on_demand_fallback(
    speeds: SlackSpeeds, state: RunView, job: Job, needs: Sequence[Need], queued_steps: float
) -> OnDemandFallback:
    """For the first of these needs that any machine meets: the cheapest step that does. Where `queued_steps`, of all
    trials that run or queue, cannot be in time on any machine, the fastest on which the budget pays them all.

    Timed machine types come first, for a slower one than expected would break the guarantee. If it is too late for all,
    the fastest timed one by the first account: an untimed one may be expensive, and no faster."""
    for need in needs:
        found = _candidates(speeds, state, job, need.known)
        if not need.whole and (payable := [x for x in found if _least_usd(state, x) * queued_steps <= free_usd(state)]):
            return _ranked(found, min(payable, key=lambda x: (x.expected_s, x.usd_per_step)), need)
        in_time = [x for x in found if need.steps * x.seconds_per_step(need) <= need.room_s]
        if in_time:
            return _ranked(found, min(in_time, key=lambda x: (not x.timed, x.usd_per_step)), need)
    found = _candidates(speeds, state, job, needs[0].known)
    return _ranked(found, min(found, key=lambda x: (not x.timed, x.safe_s, x.usd_per_step)), None)


def _least_usd(state: RunView, candidate: _Candidate) -> float:
    """Of a step there now, on spot or on-demand machines."""
    listings = [x for x in state.listings.values() if x.offer.machine == candidate.listing.offer.machine]
    return min(per_slot(state.usd_per_hour(x.offer), x) for x in listings) * candidate.expected_s / 3600


def _ranked(found: Sequence[_Candidate], best: _Candidate, need: Need | None) -> OnDemandFallback:
    others = sorted((x for x in found if x is not best), key=lambda x: (not x.timed, x.usd_per_step))
    offers = [pair for candidate in (best, *others) for pair in candidate.offers]
    step_s = best.seconds_per_step(need)
    return OnDemandFallback(offers, step_s, best.usd_per_step / step_s * 3600, need)


def _candidates(speeds: SlackSpeeds, state: RunView, job: Job, known: Mapping[Where, float]) -> list[_Candidate]:
    slowest_s = max(known.values())
    return [_candidate(speeds, job, known, slowest_s, listing, offers) for listing, offers in _on_demand(state, job)]


def cheapest_steps(speeds: SlackSpeeds, state: RunView, job: Job) -> Ranked:
    """On-demand offers by the expected cost of a step, before any was timed."""
    found = [_candidate(speeds, job, {}, 0.0, listing, offers) for listing, offers in _on_demand(state, job)]
    return [pair for x in sorted(found, key=lambda x: x.usd_per_step) for pair in x.offers]


def _candidate(
    speeds: SlackSpeeds, job: Job, known: Mapping[Where, float], slowest_s: float, listing: Listing, offers: Ranked
) -> _Candidate:
    machine = listing.offer.machine
    expected_s = speeds.seconds_per_step(known, listing, job.slots)
    timed = (machine, job.slots) in known or speeds.timed(machine, job.slots)
    safe_s = expected_s if timed else max(expected_s, slowest_s)
    usd_per_step = per_slot(listing.on_demand_usd_per_hour, listing) * expected_s / 3600
    return _Candidate(listing, offers, safe_s, expected_s, usd_per_step, timed)


def _on_demand(state: RunView, job: Job) -> list[tuple[Listing, Ranked]]:
    """Of each machine type that fits, the cheapest listing and all its offers. Where there are only spot machines,
    their types without offers: work is measured by them all the same."""
    types: dict[tuple[object, ...], list[tuple[Listing, Ranked]]] = state.memo("slack on-demand offers", dict)
    key = (job.slots, job.offer)
    if key not in types:
        found: dict[str, tuple[Listing, Ranked]] = {}
        for offer, why in on_demand_offers(state):
            listing = state.listings[offer]
            if _fits(state, job, listing):
                found.setdefault(offer.machine, (listing, []))[1].append((offer, why))
        for offer, listing in () if found else sorted(state.listings.items()):
            if _fits(state, job, listing):
                found.setdefault(offer.machine, (listing, []))
        types[key] = list(found.values())
    return types[key]


def _fits(state: RunView, job: Job, listing: Listing) -> bool:
    """A trial that names its machines runs on several of them if one is too small, whatever others there are."""
    if job.offer is not None:
        return job.offer == listing.offer
    return listing.slots >= min(job.slots, state.largest_slots)
