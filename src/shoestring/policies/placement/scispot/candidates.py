"""Expected cost of a job of a bag on each machine type, and on how many of them, from what the bag has measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from shoestring.kernel.records import Job, Where
from shoestring.kernel.types import LeaseId, Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.job_length import JobLengths, work_left_s
from shoestring.models.speed.latencies import learned_latencies
from shoestring.models.speed.model import SpeedModel
from shoestring.models.speed.prior import StepTime
from shoestring.models.speed.progress import steps_left
from shoestring.policies.placement.named_machines import whole_slots
from shoestring.policies.placement.renting.facts import is_for_sale

if TYPE_CHECKING:
    from shoestring.models.lifetimes.job_cost import Prospect
    from shoestring.models.lifetimes.source import LifetimeSource

HOPE_SIGMAS = 2.0
"""How much faster than expected all jobs may turn out on untried machines, in standard deviations. How much one job
differs from another is no hope: it says nothing about the machines."""
TIME_SHARE = 0.85
"""Of the time to the deadline: what a bag may be expected to take. The rest is for preemptions and wrong estimates."""
ALONE = (1,)


@dataclass(frozen=True, slots=True)
class Place:
    """Slots for one job on one offer: some of one machine, or all of several that work on the job together."""

    listing: Listing
    slots: int
    count: int

    @property
    def where(self) -> Where:
        """The key of measured paces: speed does not depend on price or zone."""
        return self.listing.offer.machine, self.slots

    @property
    def machines(self) -> float:
        """How many a job pays for: a share of one where several jobs share it."""
        return self.slots / self.listing.slots if self.count == 1 else float(self.count)

    @property
    def sharing(self) -> int:
        """How many such jobs share one machine."""
        return self.listing.slots // self.slots if self.count == 1 else 1

    def __str__(self) -> str:
        return str(self.listing.offer) if self.count == 1 else f"{self.count} x {self.listing.offer}"


class Candidate(NamedTuple):
    place: Place
    prospect: Prospect
    """Tried: where a job of the bag was timed."""
    work_s: float
    bag_s: float
    """How long all jobs left would take, on as many of these as may be rented."""
    in_time: bool
    """Would the bag then meet its deadline?"""


def places(state: RunView, counts: Sequence[int] = ALONE) -> list[Place]:
    """Where a job may run. Spot machines above the on-demand price are left out."""
    return [
        place_on(state, listing, count)
        for listing in sorted(state.listings.values(), key=lambda listing: listing.offer)
        if is_for_sale(state, listing) and listing.slots >= state.spec.slots
        for count in counts
    ]


def place_on(state: RunView, listing: Listing, count: int) -> Place:
    """On one machine a job has its own slots; on several it has all of them."""
    worker = state.spec.slots
    return Place(listing, worker if count == 1 else count * whole_slots(listing, worker), count)


def chosen_place(state: RunView, job: Job) -> Place | None:
    """What it is pinned to."""
    if job.offer is None:
        return None
    listing = state.listings[job.offer]
    return Place(listing, job.slots, -(-job.slots // whole_slots(listing, state.spec.slots)))


def candidates(state: RunView, lifetimes: LifetimeSource, job: Job, where: Sequence[Place]) -> list[Candidate]:
    """Empty until a job has been timed somewhere."""
    lengths, steps, found = JobLengths.of(state), steps_to_do(state, job), []
    free_after_s, hopes = _free_after_s(state), _hopes(lengths.speeds, where)
    for place in where:
        step = lengths.step_time(place.listing, place.slots)
        if step is None:
            return []
        prospect = _prospect(state, lifetimes, place, steps * step.expected_s, hopes.get(place.where))
        bag_s = _bag_s(state, place, step, free_after_s)
        in_time = bag_s <= TIME_SHARE * (state.deadline_at - state.now)
        found.append(Candidate(place, prospect, step.expected_s * steps, bag_s, in_time))
    return found


def _hopes(speeds: SpeedModel, where: Iterable[Place]) -> dict[Where, float]:
    """For places where no job was timed: the time that one may take, as a share of what is expected. Of each machine
    type only the narrowest may surprise: it costs least to try, and tells about the wider ones."""
    untimed = {place.where: place for place in where if not speeds.timed(*place.where)}
    narrowest: dict[str, int] = {}
    for machine, slots in sorted(untimed):
        narrowest.setdefault(machine, slots)
    return {
        (machine, slots): math.exp(-HOPE_SIGMAS * speeds.unsure(place.listing, slots))
        if slots == narrowest[machine]
        else 1.0
        for (machine, slots), place in untimed.items()
    }


def steps_to_do(state: RunView, job: Job) -> float:
    """From its latest checkpoint on."""
    left = steps_left(state, job, job.saved_step)
    return left if state.spec.until_exit else max(1, left)


def jobs_left(state: RunView) -> int:
    """Including those not added yet: a search adds jobs only as slots become free."""
    planned = max(state.spec.trials, len(state.spec.given))
    return state.count("waiting") + state.count("running") + max(0, planned - len(state.jobs))


def _prospect(state: RunView, lifetimes: LifetimeSource, place: Place, work_s: float, hope: float | None) -> Prospect:
    """`hope` is None where a job was timed."""
    from shoestring.models.lifetimes.job_cost import Prospect, job_usd

    latencies, model = learned_latencies(state), lifetimes.for_offer(state, place.listing)
    share = place.machines / place.count

    def usd(seconds: float) -> float:
        return job_usd(
            place.count,
            state.usd_per_hour(place.listing.offer) * share,
            seconds,
            model,
            restart_s=latencies.restart_s,
            paid_start_s=latencies.start_s,
        )

    expected_usd = usd(work_s)
    return Prospect(expected_usd, expected_usd if hope in (None, 1.0) else usd(hope * work_s), hope is None)


def _bag_s(state: RunView, place: Place, step: StepTime, free_after_s: Sequence[float]) -> float:
    """If all waiting and future jobs run there, as many at once as possible, each as soon as its machines are free."""
    at_once = max(1, state.spec.max_machines * place.sharing // place.count)
    rounds, remainder = divmod(jobs_left(state) - state.count("running"), at_once)
    work_s = step.expected_s * state.spec.max_steps

    def begins_after_s(jobs: int) -> float:
        """The last of this many jobs."""
        return free_after_s[math.ceil(jobs * place.count / place.sharing) - 1]

    even_s = begins_after_s(at_once) + rounds * work_s if rounds else 0.0
    return max(even_s, begins_after_s(remainder) + (rounds + 1) * work_s) if remainder else even_s


def _free_after_s(state: RunView) -> list[float]:
    """Seconds until each machine that may be held is free for another job, shortest first; 0 for those not yet
    rented."""
    busy: dict[LeaseId, float] = {}
    for segment in state.segments.values():
        listing = state.listings[state.leases[segment.leases[0]].offer]
        left_s = work_left_s(state, segment.job, listing, segment.slots) or 0.0
        busy |= {lease: max(left_s, busy.get(lease, 0.0)) for lease in segment.leases}
    most = state.spec.max_machines
    return sorted([0.0] * (most - len(busy)) + list(busy.values()))[:most]
