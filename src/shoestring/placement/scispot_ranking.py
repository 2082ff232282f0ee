"""Offers by the expected dollars of a job there, with the first jobs of a bag trying those that might be cheaper.

Paper: SciSpot section 4.3

Differs from the paper: what jobs take is not told by the user but learned from the first of them, and machines on which
the bag would not be done by its deadline come last, the fastest of them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from shoestring.kernel.records import Job
from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.placement.buying import Ranked
from shoestring.placement.seen import provision_s, start_s

if TYPE_CHECKING:
    from shoestring.models.lives import Lives
    from shoestring.models.selection import Prospect
    from shoestring.models.speed import StepTime

HOPE_SIGMAS = 1.0
"""How much faster than expected jobs may turn out on a machine that none has run on."""
TIME_SHARE = 0.85
"""Of the time to the deadline: what a bag may be expected to take. The rest is for losses and wrong guesses."""


class Candidate(NamedTuple):
    listing: Listing
    prospect: Prospect
    work_s: float
    in_time: bool
    """Would the bag be done by its deadline with as many of these as may be rented?"""


def ranked(state: RunView, lives: Lives) -> Ranked:
    """Best first, for the job that has waited longest. Before any job is done only prices are known: then by the hour
    of a slot."""
    from shoestring.models.selection import next_to_use

    job = state.jobs[next(iter(state.waiting))]
    found = candidates(state, lives, job)
    if not found:
        return _by_price(state, job)
    in_time = [candidate for candidate in found if candidate.in_time]
    if not in_time:
        fastest = sorted(found, key=lambda candidate: (candidate.work_s, candidate.prospect.expected_usd))
        return [
            (candidate.listing.offer, f"time is short, jobs take {candidate.work_s:.0f} s") for candidate in fastest
        ]
    first = in_time[
        next_to_use([candidate.prospect for candidate in in_time], jobs_left=_jobs_left(state) - state.count("running"))
    ]
    order = sorted(found, key=lambda it: (it is not first, not it.in_time, it.prospect.expected_usd, it.listing.offer))
    return [(it.listing.offer, _why(it.prospect, trial=it is first and not it.prospect.tried)) for it in order]


def cheapest_known_usd(found: Sequence[Candidate]) -> float | None:
    """The least that a job has been seen to come to on machines that are fast enough; None while that is not known."""
    return min((it.prospect.expected_usd for it in found if it.in_time and it.prospect.tried), default=None)


def too_slow(found: Sequence[Candidate]) -> frozenset[str]:
    """Machine types on which the bag would miss its deadline. None of them if it would on all: then all will help."""
    slow = frozenset(it.listing.offer.machine for it in found if not it.in_time)
    return slow if any(it.in_time for it in found) else frozenset()


def candidates(state: RunView, lives: Lives, job: Job) -> list[Candidate]:
    """None until a job has been timed somewhere. Spot above the on-demand price is nothing to bid on."""
    from shoestring.models.job_length import JobLengths

    lengths, found = JobLengths.of(state), []
    for listing in _for_sale(state, job):
        step = lengths.step_time(listing, job.slots)
        if step is None:
            return []
        steps = max(1, job.until_step - job.saved_step)
        tried = lengths.tried(listing, job.slots) or _being_tried(state, listing)
        found.append(
            Candidate(
                listing,
                _prospect(state, lives, job, listing, step, tried=tried),
                step.expected_s * steps,
                _bag_s(state, job, listing, step) <= TIME_SHARE * (state.deadline_at - state.now),
            )
        )
    return found


def _for_sale(state: RunView, job: Job) -> list[Listing]:
    return [
        listing
        for listing in sorted(state.listings.values(), key=lambda listing: listing.offer)
        if job.offer in (None, listing.offer)
        and (not listing.offer.spot or state.usd_per_hour(listing.offer) <= listing.on_demand_usd_per_hour)
    ]


def _prospect(state: RunView, lives: Lives, job: Job, listing: Listing, step: StepTime, *, tried: bool) -> Prospect:
    from shoestring.models.selection import Prospect, job_usd

    machines, share = machines_for(job, listing)
    steps, start = max(1, job.until_step - job.saved_step), start_s(state)

    def usd(step_s: float) -> float:
        return job_usd(
            machines,
            state.usd_per_hour(listing.offer) * share,
            step_s * steps,
            lives.of(state, listing),
            restart_s=provision_s(state) + start,
            paid_start_s=start,
        )

    expected_usd = usd(step.expected_s)
    return Prospect(expected_usd, expected_usd if tried else usd(step.at_most_s(-HOPE_SIGMAS)), tried)


def _bag_s(state: RunView, job: Job, listing: Listing, step: StepTime) -> float:
    """All jobs that are left, on as many such machines as may be rented."""
    machines, share = machines_for(job, listing)
    at_once = max(1, int(state.spec.max_machines / (machines * share)))
    rounds = -(-_jobs_left(state) // at_once)
    return rounds * step.expected_s * state.spec.max_steps


def _jobs_left(state: RunView) -> int:
    """Also those that are not on the books yet: a search adds jobs only as places for them come free."""
    planned = max(state.spec.trials, len(state.spec.given))
    return state.count("waiting") + state.count("running") + max(0, planned - len(state.jobs))


def _being_tried(state: RunView, listing: Listing) -> bool:
    """Is a machine of this type there, or on its way? What it will tell is worth waiting for."""
    return any(lease.offer.machine == listing.offer.machine for lease in state.leases.values())


def machines_for(job: Job, listing: Listing) -> tuple[int, float]:
    """How many machines it takes, and what share of each: several jobs may sit on one."""
    if job.slots <= listing.slots:
        return 1, job.slots / listing.slots
    return -(-job.slots // listing.slots), 1.0


def _by_price(state: RunView, job: Job) -> Ranked:
    def usd(listing: Listing) -> float:
        machines, share = machines_for(job, listing)
        return machines * share * state.usd_per_hour(listing.offer)

    cheapest_first = sorted(_for_sale(state, job), key=lambda listing: (usd(listing), listing.offer))
    return [(listing.offer, f"${usd(listing):.4f}/h, and no job is done yet") for listing in cheapest_first]


def _why(prospect: Prospect, *, trial: bool) -> str:
    if trial:
        hoped = f"${prospect.hoped_usd:.3g} if it goes well there"
        return f"worth a try: ${prospect.expected_usd:.3g} a job expected, {hoped}"
    return f"${prospect.expected_usd:.3g} a job expected, losses included"
