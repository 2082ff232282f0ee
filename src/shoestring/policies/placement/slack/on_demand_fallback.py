"""The on-demand machine that a trial's slack is computed for: the cheapest per step on which it is still in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoestring.kernel.records import Job, Where
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.progress import step_size
from shoestring.policies.placement.on_demand import on_demand_offers
from shoestring.policies.placement.renting.facts import per_slot
from shoestring.policies.placement.renting.rent import Ranked
from shoestring.policies.placement.slack.speed import SlackSpeeds


@dataclass(frozen=True)
class OnDemandFallback:
    offers: Ranked
    """All on-demand offers that fit, best first."""
    seconds_per_step: float
    """On the first of them, conservatively: a machine type on which no trial was timed counts as slow as the slowest
    known. Where none is on offer, the slowest pace known."""
    usd_per_hour: float
    """Dollars for an hour of work at that pace."""


@dataclass(frozen=True)
class _Candidate:
    offers: Ranked
    safe_s: float
    expected_s: float
    usd_per_step: float
    timed: bool


def on_demand_fallback(
    speeds: SlackSpeeds, state: RunView, job: Job, known: Mapping[Where, float], wanted: Sequence[tuple[float, float]]
) -> OnDemandFallback:
    """`wanted`: steps that should be done, and the seconds there are for them; where no machine can, fewer steps.

    Timed machine types come first, for a slower one than expected would break the guarantee. If it is too late for all,
    the fastest timed one: an untimed one may be expensive, and no faster."""
    slowest_s = max(known.values())
    found = [_candidate(speeds, job, known, slowest_s, listing, offers) for listing, offers in _on_demand(state, job)]
    if not found:
        return OnDemandFallback([], slowest_s, 0.0)
    for steps, room_s in wanted:
        # A save waits for the end of a step.
        in_time = [x for x in found if (steps + step_size(state)) * x.safe_s <= room_s]
        if in_time:
            best = min(in_time, key=lambda x: (not x.timed, x.usd_per_step))
            break
    else:
        best = min(found, key=lambda x: (not x.timed, x.safe_s, x.usd_per_step))
    others = sorted((x for x in found if x is not best), key=lambda x: (not x.timed, x.usd_per_step))
    offers = [pair for candidate in (best, *others) for pair in candidate.offers]
    return OnDemandFallback(offers, best.safe_s, best.usd_per_step / best.safe_s * 3600)


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
    return _Candidate(offers, safe_s, expected_s, usd_per_step, timed)


def _on_demand(state: RunView, job: Job) -> list[tuple[Listing, Ranked]]:
    """Of each machine type that fits, the cheapest listing and all its offers."""
    types: dict[tuple[object, ...], list[tuple[Listing, Ranked]]] = state.memo("slack on-demand offers", dict)
    key = (job.slots, job.offer)
    if key not in types:
        found: dict[str, tuple[Listing, Ranked]] = {}
        for offer, why in on_demand_offers(state):
            listing = state.listings[offer]
            if job.offer in (None, offer) and listing.slots >= min(job.slots, state.largest_slots):
                found.setdefault(offer.machine, (listing, []))[1].append((offer, why))
        types[key] = list(found.values())
    return types[key]
