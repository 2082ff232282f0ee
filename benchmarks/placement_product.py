"""The product itself on a study of the placement benchmark: the controller, guard, placement and bills of `shoestring
simulate`, on recorded machines, with the recorded capacity.

It has less information than the contestants of the tick world: no probes of zones, only the outcomes of its own
requests and machines, and no amounts of work, only measured step times.
"""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np

from benchmarks.placement_study import Study, StudyOutcome, first_free
from benchmarks.placement_traces import TICK_S
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import events as e
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.events import RunStarted
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Config, Denial, LeaseId, Listing, Offer
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.provider import Grant, SimulatedProvider
from shoestring.space.space import Float, Space
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Latencies, Workload
from shoestring.world.sim.world import SimWorld

START = 1_700_000_000.0
STEP_S = 60.0
"""Of the longest trial; all have as many steps, so those of others are shorter."""


def play_product(study: Study, placement: str = "slack") -> StudyOutcome:
    """One run of the recipe `given`: sixteen configurations, which are amounts of work."""
    market = RecordedProvider(study)
    max_steps = round(max(study.work_s) / STEP_S)
    spec = RunSpec(
        name="study",
        space=Space(params={"work_s": Float(0.0, max(study.work_s))}),
        metric="value",
        given=tuple({"work_s": work_s} for work_s in study.work_s),
        trials=len(study.work_s),
        max_steps=max_steps,
        budget_usd=1e6,
        deadline_s=study.deadline_s,
        listings=market.listings,
        max_machines=2 * len(study.work_s),  # every trial could move at once
        recipe="given",
        options={"placement": placement},
    )

    def seconds_per_step(config: Config, *_: object) -> float:
        return float(config["work_s"] or 0.0) / max_steps

    switching = study.switching
    world = RecordedWorld(
        market,
        Workload(curve=lambda _: lambda step: {"value": 1.0 / step}, seconds_per_step=seconds_per_step),
        Latencies(start_s=switching.restore_s, restore_overhead_s=0.0, save_overhead_s=switching.save_s),
        start=START,
    )
    state = run(
        world,
        MemoryJournal(),
        recipes.build(spec),
        BudgetAndDeadline(),
        first=[RunStarted(at=START, spec=spec, seed=0)],
    )
    return StudyOutcome(state.spent_usd, sum(job.status != "finished" for job in state.jobs.values()))


class RecordedProvider(SimulatedProvider):
    """Leases queue for the machines of their zones, like the trials of `play_study`."""

    def __init__(self, study: Study) -> None:
        recording, switching = study.recording, study.switching
        span = slice(study.start, study.start + int(study.deadline_s / TICK_S) + 1)
        listings, traces = [], {}
        self._counts: dict[Offer, tuple[list[float], list[int]]] = {}
        for zone, (counts, prices) in enumerate(
            zip(recording.counts[:, span], recording.usd_per_hour[:, span], strict=True)
        ):
            for spot in (True, False):
                offer = Offer(provider="aws", zone=f"zone-{zone}", machine="recorded", spot=spot)
                usd = recording.on_demand_usd_per_hour
                listings.append(Listing(offer=offer, vcpus=8.0, memory_gb=61.0, on_demand_usd_per_hour=usd))
            spot_offer = listings[-2].offer
            self._counts[spot_offer] = _changes(counts)
            traces[spot_offer] = PriceTrace(spot_offer, *_changes(prices))
        super().__init__(
            listings,
            PriceBook(traces, listings),
            self,
            provision_s=switching.setup_s - switching.restore_s,
            provision_spread=0.0,
        )
        self._places: dict[LeaseId, tuple[Offer, int]] = {}

    def grant(self, request: RequestLease, now: float) -> Grant | Denial:
        offer = request.offer
        outcome = super().grant(request, now)
        if offer.spot and isinstance(outcome, Grant):
            place = first_free({taken for there, taken in self._places.values() if there == offer})
            times, counts = self._counts[offer]
            if counts[bisect_right(times, now) - 1] < place:
                return "no_capacity"
            self._places[request.lease] = (offer, place)
        return outcome

    def revoked_at(self, lease: LeaseId, offer: Offer, granted_at: float, _: float | None, /) -> float:
        """When its zone has fewer machines than its place; what happened before it was granted counts too."""
        if not offer.spot:
            return math.inf
        times, counts = self._counts[offer]
        place = self._places[lease][1]
        first = max(0, bisect_right(times, granted_at) - 1)
        return next((max(granted_at, times[i]) for i in range(first, len(times)) if counts[i] < place), math.inf)

    def leave(self, lease: LeaseId) -> None:
        self._places.pop(lease, None)


class RecordedWorld(SimWorld):
    """Removes ended leases from the queues."""

    def next_event(self) -> e.Event:
        event = super().next_event()
        if isinstance(event, e.LeaseEnded) and isinstance(self.provider, RecordedProvider):
            self.provider.leave(event.lease)
        return event


def _changes(by_tick: np.ndarray) -> tuple[list[float], list]:
    """From when on each value held, and the values."""
    at = np.flatnonzero(np.diff(by_tick, prepend=np.nan))
    return (START + at * TICK_S).tolist(), by_tick[at].tolist()
