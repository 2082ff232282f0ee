"""Algorithm 1 of SpotTune, line by line, for comparison with the corrected versions (`cheapest_step`,
`refund_seeking`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job, Lease
from shoestring.kernel.types import LeaseId, Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.market.billing import metered_usd, new_lease_usd
from shoestring.models.speed.model import SpeedAsPrinted
from shoestring.policies.placement.renting.assign import PLACEMENT_WAKERS, RETRY, start_on
from shoestring.policies.placement.renting.breaker import renting_stopped
from shoestring.policies.placement.renting.facts import free_usd, not_just_denied, setbacks_of, try_again
from shoestring.policies.placement.renting.least_time import has_time
from shoestring.policies.placement.renting.packing import Packing
from shoestring.policies.placement.renting.rent import Ranked, affordable, rent_one
from shoestring.policies.placement.revocation_risk import AssumedRate, FromPrices
from shoestring.policies.placement.spottune.rotation import HOUR_S, Stay, leave_in_time

ABOVE_MARKET_USD = (0.00001, 0.2)
"""RANDOM of line 4, dollars an hour: several times the price of a small machine, a small part of a large one's."""
SLEEP_S = 10.0
"""Line 45: how often it is checked whether a trial has had its machine for more than an hour."""
MORE_THAN_AN_HOUR = Stay(longest_s=HOUR_S + SLEEP_S, lead_s=0.0, done_soon_s=0.0)
PAID_SLICES = 2.0
"""What is left of the budget pays a machine for so many slices at its maximum price, or the maximum is lowered."""
ASSIGNED = "vm"
"""The map of line 11, as a tag of each trial."""


@dataclass(frozen=True)
class AsPrinted:
    """Paper: SpotTune Alg. 1 l.1-47.

    Differs from the paper: events wake it, not a loop that sleeps. `assign` is void once the machine is gone, or no
    trial would start again after a preemption. Another zone is another instance of the pool. An offer that was just
    denied is not requested again at once, and then by one trial first. Machines are limited in number; what the budget
    cannot pay is replaced by a cheaper offer, and a bid that it could not reserve for two slices is lowered. A trial
    does not move in the last fifth of the time, without money for another machine, or before its first step there. A
    trial that the search pinned to an offer gets it.
    """

    risk: AssumedRate | FromPrices = FromPrices()  # noqa: RUF009  # frozen
    """REVPREDMODEL: the paper's own is `shoestring market fit --model revpred`."""
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        yield from leave_in_time(state, event, MORE_THAN_AN_HOUR, lambda lease: lease.offer.spot)
        yield from _deploy(state)
        yield from self._request(state)
        yield from _shut_down(state)

    def _request(self, state: RunView) -> Iterator[d.Decision]:
        """Lines 38-44: a machine of its own for every trial that waits."""
        for job in [state.jobs[job_id] for job_id in state.waiting]:
            if _assigned(state, job) is not None:
                continue
            if state.in_hand >= state.spec.max_machines or renting_stopped(state):
                return
            pool = _pool(state, job)
            if not pool:
                yield d.WindDown(
                    reason="failed", why=f"no spot machine on offer has the {job.slots} slots that {job.id} needs"
                )
                return
            open_now = [listing for listing in pool if not_just_denied(state, listing.offer)]
            requestable = [listing for listing in open_now if not _is_being_tried(state, listing.offer)]
            if not requestable and open_now:
                continue
            if not requestable:
                if RETRY not in state.timers:
                    offers = [listing.offer for listing in pool]
                    yield try_again(state, setbacks_of(state, offers), offers)
                return
            bids = {listing.offer: _random_bid(state, job, listing.offer) for listing in requestable}

            def bid(_: RunView, offer: Offer, bids: dict[Offer, float] = bids) -> float:
                return bids[offer]

            lease = state.next_lease()
            if not (
                yield from rent_one(state, affordable(state, self._ranked(state, job, requestable, bids), bid), bid)
            ):
                return
            yield d.TagJob(job=job.id, tags={ASSIGNED: lease}, why=f"{lease} is rented for this trial alone")

    def _ranked(self, state: RunView, job: Job, pool: list[Listing], bids: dict[Offer, float]) -> Ranked:
        """GETBESTINST: the whole map sCost, cheapest first."""
        from shoestring.models.step_cost import printed_usd_per_step

        M = SpeedAsPrinted({job.id: state.paces(job)})
        step_s = [M.step_time(job.id, listing, job.slots).expected_s for listing in pool]
        p = self.risk.chances(state, pool, [bids[listing.offer] for listing in pool])
        mean = [_mean_of_the_last_hour(state, listing.offer) for listing in pool]
        rows = zip(printed_usd_per_step(step_s, p, mean).tolist(), pool, step_s, p, mean, strict=True)
        return [
            (
                listing.offer,
                f"${cost:.3g} a step as printed: {seconds:.3g} s x (1 - {chance:.3f}) x ${usd:.4f}/h in the last hour",
            )
            for cost, listing, seconds, chance, usd in sorted(rows, key=lambda row: (row[0], row[1].offer))
        ]


def _pool(state: RunView, job: Job) -> list[Listing]:
    """spotPool, as far as the trial fits."""
    return [
        listing
        for listing in state.listings.values()
        if (listing.offer.spot if job.offer is None else listing.offer == job.offer) and listing.slots >= job.slots
    ]


def _is_being_tried(state: RunView, offer: Offer) -> bool:
    """Its last requests failed: one machine shows whether that is over."""
    return offer in state.setbacks and any(state.leases[lease].offer == offer for lease in state.pending)


def _random_bid(state: RunView, job: Job, offer: Offer) -> float:
    """Line 4. A maximum is reserved in the budget: one that is a thousand times the price of a small machine would be
    paid for minutes, at the end of which the trial is stopped."""
    price = state.usd_per_hour(offer)
    printed = price + state.rng(f"bid:{job.id}:{offer}").uniform(*ABOVE_MARKET_USD)
    usd_at_one = new_lease_usd(state.listings[offer].billing, PAID_SLICES * state.spec.slice_s, 1.0)
    return printed if printed * usd_at_one <= free_usd(state) else max(price, free_usd(state) / usd_at_one)


def _mean_of_the_last_hour(state: RunView, offer: Offer) -> float:
    """The price with a bar of line 6. For a market younger than an hour, the mean of all its prices."""
    history = state.history(offer)
    since = max(state.now - HOUR_S, history.times[0])
    if since >= state.now:
        return history.usd_per_hour[-1]
    return metered_usd(history, since, state.now) * HOUR_S / (state.now - since)


def _assigned(state: RunView, job: Job) -> Lease | None:
    """Its machine, pending or up, if work can still start on it."""
    lease = state.leases.get(LeaseId(str(job.tags.get(ASSIGNED))))
    if lease is None or job.offer not in (None, lease.offer):
        return None
    if lease.granted_at is not None and not (lease.usable and has_time(state, lease)):
        return None
    return lease


def _deploy(state: RunView) -> Iterator[d.Decision]:
    """Line 41: a trial whose machine is up starts."""
    for job in [state.jobs[job_id] for job_id in state.waiting]:
        lease = _assigned(state, job)
        if lease is not None and lease.usable and lease.free_slots >= job.slots:
            yield start_on(state, job, Packing((lease.id,), (job.slots,)))


def _shut_down(state: RunView) -> Iterator[d.Decision]:
    """Lines 29 and 33: a machine whose trial does not wait for it is released at once."""
    waited_for = {lease.id for job in state.waiting if (lease := _assigned(state, state.jobs[job])) is not None}
    for lease_id in list(state.idle):
        if lease_id not in waited_for:
            yield d.ReleaseLease(lease=lease_id, why="released: its trial does not need it any more")
