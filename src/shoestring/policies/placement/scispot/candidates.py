"""Expected cost of a job of a bag on each machine type, and on how many of them, from what the bag has measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from shoestring.kernel.records import Job, Where
from shoestring.kernel.types import LeaseId, Listing
from shoestring.kernel.view import RunView
from shoestring.models.speed.job_length import JobLengths, work_left_s
from shoestring.models.speed.latencies import learned_latencies
from shoestring.models.speed.model import SpeedModel
from shoestring.models.speed.prior import STEP_S, StepTime
from shoestring.models.speed.progress import steps_left
from shoestring.policies.placement.named_machines import whole_slots
from shoestring.policies.placement.renting.facts import is_for_sale

if TYPE_CHECKING:
    from shoestring.models.lifetimes.job_cost import Prospect
    from shoestring.models.lifetimes.source import LifetimeSource

UNTIMED_JOB_S = 3600.0
"""How long a job is taken to be on a machine of the mean size, while nothing is known of it: only ratios count then,
and machines start in a small part of that."""
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


def places_with_cpus(state: RunView, cpus: float) -> list[Place]:
    """The same for jobs of so many CPUs: on each offer as many machines as have them, if so many may be rented."""
    fitting = [place.listing for place in places(state)]
    found = [place_with_cpus(listing, cpus, state.spec.slots) for listing in fitting]
    return [place for place in found if place.count <= state.spec.max_machines]


def place_with_cpus(listing: Listing, cpus: float, worker: int) -> Place:
    """n_i = ceil(R / cpus_i) machines of type i for a job of R CPUs, all of each; where one has enough, only as many of
    its slots as are needed.  Paper: SciSpot section 4.3, n_i

    Differs from the paper: rounded up, so that R need not be a multiple of the CPUs of every type.
    """
    whole = whole_slots(listing, worker)
    usable_cpus = listing.vcpus * whole / listing.slots
    count = max(1, math.ceil(cpus / usable_cpus - 1e-9))
    workers = max(1, math.ceil(cpus / usable_cpus * whole / worker - 1e-9))
    return Place(listing, worker * workers if count == 1 else count * whole, count)


def chosen_place(state: RunView, job: Job) -> Place | None:
    """What it is pinned to."""
    if job.offer is None:
        return None
    listing = state.listings[job.offer]
    return Place(listing, job.slots, -(-job.slots // whole_slots(listing, state.spec.slots)))


def candidates(state: RunView, lifetimes: LifetimeSource, job: Job, where: Sequence[Place]) -> list[Candidate]:
    """By what was timed; before that by the user's estimate, and without one by sizes and prices alone: then none is
    known to be too slow."""
    lengths, steps, found = JobLengths.of(state), steps_to_do(state, job), []
    step_times, free_after_s = _step_times(state, lengths.speeds, where), _free_after_s(state)
    unknown = not (lengths.speeds.trials or lengths.speeds.estimated)
    for place in where:
        step = step_times[place.where]
        tried = lengths.speeds.timed(*place.where)
        prospect = _prospect(state, lifetimes, place, steps * step.expected_s, tried)
        bag_s = _bag_s(state, place, step, free_after_s)
        in_time = unknown or bag_s <= TIME_SHARE * (state.deadline_at - state.now)
        found.append(Candidate(place, prospect, step.expected_s * steps, bag_s, in_time))
    return found


def _step_times(state: RunView, speeds: SpeedModel, where: Sequence[Place]) -> dict[Where, StepTime]:
    """Before a job was timed, by the guess from sizes. Its spread is that of the ratio to the place with the least
    dollars: that all jobs may be longer makes no place better or worse."""
    if speeds.trials or not where:
        return {place.where: speeds.step_time(None, place.listing, place.slots) for place in where}
    guess_s = {place.where: speeds.usual_s(place.listing, place.slots) for place in where}
    base = min(where, key=lambda x: (guess_s[x.where] * x.machines * state.usd_per_hour(x.listing.offer), x.where))
    apart = speeds.apart([(place.listing, place.slots) for place in where])
    scale = 1.0 if speeds.estimated else UNTIMED_JOB_S / (STEP_S * state.spec.max_steps)
    return {at: StepTime(scale * each_s, apart.log_sd(at, base.where)) for at, each_s in guess_s.items()}


def steps_to_do(state: RunView, job: Job) -> float:
    """From its latest checkpoint on."""
    left = steps_left(state, job, job.saved_step)
    return left if state.spec.until_exit else max(1, left)


def jobs_left(state: RunView) -> int:
    """Including those not added yet: a search adds jobs only as slots become free."""
    planned = max(state.spec.trials, len(state.spec.given))
    return state.count("waiting") + state.count("running") + max(0, planned - len(state.jobs))


def _prospect(state: RunView, lifetimes: LifetimeSource, place: Place, work_s: float, tried: bool) -> Prospect:
    from shoestring.models.lifetimes.job_cost import Prospect, job_usd

    latencies = learned_latencies(state)
    expected_usd = job_usd(
        place.count,
        state.usd_per_hour(place.listing.offer) * place.machines / place.count,
        work_s,
        lifetimes.for_offer(state, place.listing),
        restart_s=latencies.restart_s,
        paid_start_s=latencies.start_s,
    )
    return Prospect(expected_usd, tried=tried)


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
