"""SciSpot, job bags on preemptible VMs: which machine to rent, whether to reuse it, how long to keep a spare.

Offers are ranked by the expected dollars of a job there, preemptions included. A machine that is up is reused for the
next job unless a new one is expected to do it sooner, or cheaper; an idle one is kept as a spare until that costs more
than it saves. Job lengths and machine lifetimes are learned during the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Lease
from shoestring.kernel.view import RunView
from shoestring.policies.placement.renting.allocations import launched_once, release_rests, rest_of
from shoestring.policies.placement.renting.assign import IDLE, PLACEMENT_WAKERS, moves_under_way, start_waiting_jobs
from shoestring.policies.placement.renting.least_time import has_time
from shoestring.policies.placement.renting.rent import rent_missing
from shoestring.policies.placement.scispot.candidates import candidates, chosen_place, places
from shoestring.policies.placement.scispot.ranking import MORE_EXPENSIVE, ranked, times_cheapest, too_slow
from shoestring.policies.placement.scispot.reuse import job_here_usd, reuse_here_s, spare_here_s
from shoestring.policies.placement.scispot.supply import provide
from shoestring.units import show_duration, show_usd

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource


@dataclass(frozen=True)
class SciSpot:
    """Paper: SciSpot section 5

    Differs from the paper: spares are kept to their break-even and not for an hour.
    """

    lifetimes: LifetimeSource
    wants: ClassVar[frozenset[Waker]] = PLACEMENT_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        if state.phase != "running":
            return
        yield from self._release_unfit(state)
        if _places_chosen(state):
            if launched_once(state):
                yield from release_rests(state, _sizes(state))
            yield from provide(state)
        else:
            yield from start_waiting_jobs(state)
            yield from self._rent(state)
        yield from self._release_spares(state)

    def _release_unfit(self, state: RunView) -> Iterator[d.Decision]:
        """Before any job starts, release idle machines that are worse for the next job than a new one. One that has
        just been granted was chosen for it, and is used."""
        if not state.waiting or not state.idle:
            return
        job = state.jobs[next(iter(state.waiting))]
        found = [] if job.offer is not None else candidates(state, self.lifetimes, job, places(state))
        slow = too_slow(found)
        for lease in [lease for lease in map(state.leases.__getitem__, state.idle) if _used(lease)]:
            if job.offer not in (None, lease.offer):
                continue  # jobs pinned to its offer decide about it
            sooner_s = -reuse_here_s(state, self.lifetimes, job, lease)
            here_usd = job_here_usd(state, self.lifetimes, job, lease)
            if sooner_s > 0:
                age = "" if lease.granted_at is None else f"{show_duration(state.now - lease.granted_at)} old: "
                why = f"{age}the next job is expected to be done {show_duration(sooner_s)} sooner on a new machine"
                yield d.ReleaseLease(lease=lease.id, why=why)
            elif lease.offer.machine in slow:
                why = "with this machine type the bag would miss its deadline, with another it would not"
                yield d.ReleaseLease(lease=lease.id, why=why)
            elif here_usd is not None and times_cheapest(found, lease.offer.machine, here_usd) > MORE_EXPENSIVE:
                best_usd = min(it.prospect.expected_usd for it in found if it.in_time)
                why = f"the next job would cost {show_usd(here_usd)} here and {show_usd(best_usd)} on another type"
                yield d.ReleaseLease(lease=lease.id, why=why)

    def _rent(self, state: RunView) -> Iterator[d.Decision]:
        """One machine after the other: an offer that the last one already tries need not be tried twice."""
        last = None
        while last != state.next_lease():
            last = state.next_lease()
            yield from rent_missing(state, lambda view: ranked(view, self.lifetimes), at_most=1)

    def _release_spares(self, state: RunView) -> Iterator[d.Decision]:
        if moves_under_way(state):
            return
        over = not state.segments and not state.waiting and not state.background_tasks
        for lease in [state.leases[lease_id] for lease_id in state.idle]:
            spare_s = 0.0 if over or not has_time(state, lease) else spare_here_s(state, self.lifetimes, lease)
            due_at = _idle_since(state, lease) + spare_s
            if due_at <= state.now:
                why = "idle: no work is left for it" if over else "as a spare it would cost more than it saves"
                why = f"{rest}: {why}" if (rest := rest_of(lease)) else why
                yield d.ReleaseLease(lease=lease.id, why=why)
            elif f"{IDLE}{lease.id}" not in state.timers:
                why = f"kept for {show_duration(spare_s)} as a spare, for a job whose machine is preempted"
                yield d.WakeAt(name=f"{IDLE}{lease.id}", at=due_at, about=lease.id, why=why)


def _places_chosen(state: RunView) -> bool:
    """Do jobs come with the offer and number of their machines (`scispot.gang_size`)? Not so where configurations name
    machines: those are not ours to choose, and are never shared."""
    if not state.waiting or state.spec.space.roles:
        return False
    return state.jobs[next(iter(state.waiting))].offer is not None


def _sizes(state: RunView) -> set[int]:
    """On how many machines each of the waiting jobs runs."""
    found = (chosen_place(state, state.jobs[job_id]) for job_id in state.waiting)
    return {place.count for place in found if place is not None}


def _used(lease: Lease) -> bool:
    return lease.granted_at is not None and lease.idle_since is not None and lease.idle_since > lease.granted_at


def _idle_since(state: RunView, lease: Lease) -> float:
    return state.now if lease.idle_since is None else lease.idle_since
