"""Whole simulated bags whose jobs may run on several machines: what is chosen, what it costs, every guarantee holds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import pytest

from shoestring import recipes
from shoestring.controller import run
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing, Offer
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.policies.placement.scispot.gang_size import Gangs
from shoestring.space.space import Float, Space, machine_type
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC
from shoestring.world.sim.workload import Workload
from shoestring.world.sim.world import SimWorld
from tests.properties.test_invariants import check_invariants
from tests.studies import Case, random_case

HOUR_S = 3600.0
STUDIES = 60
SMALL = Listing(
    offer=Offer(provider="gcp", zone="a", machine="small", spot=True),
    vcpus=4,
    memory_gb=8,
    on_demand_usd_per_hour=0.2,
    max_life_s=24 * HOUR_S,
)


@dataclass(frozen=True)
class Bag:
    usd: float
    hours: float
    done: int
    starts: Counter[int]
    """How often a job started, by number of machines."""


def played(scaling: float, gangs: str | None, *, jobs: int, hours: float = 2.0, deadline_s: float = 1e6) -> Bag:
    """Jobs that take this many hours alone, and are n^scaling times as fast on n of the eight machines."""
    spec = msgspec.structs.replace(
        SPEC,
        given=tuple({"x": number / jobs} for number in range(jobs)),
        trials=jobs,
        max_steps=30,
        budget_usd=1e4,
        deadline_s=deadline_s,
        listings=(SMALL,),
        max_machines=8,
        recipe="scispot",
        options={} if gangs is None else {"gangs": gangs},
    )
    provider = SimulatedProvider.preemptible(spec.listings, provision_s=60.0)
    workload = Workload(
        curve=lambda _: lambda step: {"loss": 1 / step},
        seconds_per_step=lambda _, __, slots: hours * HOUR_S / spec.max_steps / slots**scaling,
    )
    journal, opening = MemoryJournal(), e.RunStarted(at=provider.start, spec=spec, seed=0)
    world = SimWorld(provider, workload, start=provider.start)
    state = run(world, journal, recipes.build(spec), BudgetAndDeadline(), first=[opening])
    return Bag(
        state.spent_usd,
        (state.now - provider.start) / HOUR_S,
        sum(job.status == "finished" for job in state.jobs.values()),
        Counter(len(x.leases) for entry in journal.read() for x in entry.decisions if isinstance(x, d.StartSegment)),
    )


@pytest.mark.parametrize("scaling", [0.3, 0.95])
def test_where_there_is_time_a_few_gangs_are_tried_and_the_rest_of_the_bag_costs_what_it_did(scaling: float) -> None:
    alone, free = (played(scaling, gangs, jobs=30) for gangs in (None, "1,2,4"))
    assert free.done == alone.done == 30
    assert 1 <= free.starts[2] + free.starts[4] <= 3
    assert free.usd < 1.05 * alone.usd


def test_gangs_finish_a_bag_that_jobs_on_single_machines_would_not() -> None:
    """Twelve jobs of two hours on eight machines: the last four have two machines each, or come too late."""
    alone, free = (played(0.95, gangs, jobs=12, deadline_s=4 * HOUR_S) for gangs in (None, "1,2,4"))
    assert (alone.done, free.done) == (8, 12)
    assert free.starts[2] >= 4
    assert free.usd < 1.05 * 12 / 8 * alone.usd


def test_gangs_that_must_be_cost_what_they_cost() -> None:
    one, two, four = (played(0.3, gangs, jobs=12) for gangs in ("1", "2", "4"))
    assert one.usd < two.usd < four.usd
    assert set(two.starts) == {2}
    assert set(four.starts) == {4}


# -- the contract ------------------------------------------------------------------------------------------------------
class _Gangs(PolicySuite):
    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return recipes.build(spec)


GIVEN = tuple({"x": number / 10} for number in range(9))


class TestGangsKeepTheContract(_Gangs):
    spec = msgspec.structs.replace(SPEC, recipe="scispot", given=GIVEN, options={"gangs": "1,2"})


class TestGangsThatMustBeKeepItToo(_Gangs):
    spec = msgspec.structs.replace(SPEC, recipe="scispot", options={"gangs": 3, "checkpointing": "none"})


# -- guarantees -------------------------------------------------------------------------------------------------------
def gang_case(number: int) -> Case:
    rng = random.Random(f"gangs/{number}")
    case = random_case(rng)
    most = rng.randint(2, 6)
    counts = sorted({rng.randint(1, most) for _ in range(3)})
    spec = msgspec.structs.replace(
        case.spec,
        recipe="scispot",
        options={"gangs": ",".join(map(str, counts)), "checkpointing": case.spec.options["checkpointing"]},
        max_machines=most,
        trials=rng.randint(1, 12),
        budget_usd=case.spec.budget_usd * 5,
        fractions=(),
        constraints=(),
    )
    return replace(case, spec=spec, revoked_per_hour=rng.choice((0.3, 3.0)))


def test_guarantees_hold_whatever_gangs_form() -> None:
    seen: Counter[str] = Counter()
    for number in range(STUDIES):
        case = gang_case(number)
        check_gangs(case, check_invariants(case), seen)
    assert all(seen[what] >= 5 for what in ("alone", "gang", "gang lost", "shared")), seen


def check_gangs(case: Case, entries: list[Entry], seen: Counter[str]) -> None:
    """All machines of a gang are of one offer, whole and its own; their number is one of those allowed."""
    counts = {int(word) for word in str(case.spec.options["gangs"]).split(",")}
    slots = {listing.offer: listing.slots for listing in case.spec.listings}
    offers: dict[str, Offer] = {}
    on: dict[str, set[str]] = {}
    for entry in entries:
        if isinstance(entry.event, e.SegmentEnded):
            for held in on.values():
                held.discard(entry.event.segment)
        elif isinstance(entry.event, e.LeaseEnded):
            gone = on.pop(entry.event.lease, set())
            for held in on.values():
                seen["gang lost"] += bool(held & gone) and entry.event.cause == "revoked"
                held -= gone
        for decision in entry.decisions:
            if isinstance(decision, d.RequestLease):
                offers[decision.lease], on[decision.lease] = decision.offer, set()
            elif isinstance(decision, d.StartSegment):
                leases = decision.leases
                assert len(leases) in counts
                assert len({offers[lease] for lease in leases}) == 1
                if len(leases) > 1:
                    assert all(share == slots[offers[leases[0]]] for share in decision.slots_on)
                    assert not any(on[lease] for lease in leases)
                seen["gang" if len(leases) > 1 else "alone"] += 1
                seen["shared"] += any(on[lease] for lease in leases)
                for lease in leases:
                    on[lease].add(decision.segment)


# -- the option --------------------------------------------------------------------------------------------------------
def test_gangs_come_between_the_search_and_the_placement_on_request() -> None:
    def built(**options) -> list[Policy]:
        return recipes.build(msgspec.structs.replace(SPEC, recipe="scispot", options=options))

    gangs = built(gangs=" 4, 1,2,2")[1]
    assert isinstance(gangs, Gangs)
    assert gangs.counts == (1, 2, 4)
    assert built(gangs=2)[1] == replace(gangs, counts=(2,))
    assert built(gangs="1") == built()


@pytest.mark.parametrize(
    ("gangs", "message"),
    [
        ("", "options.gangs: '' is not a number"),
        ("1,two", "options.gangs: 'two' is not a number"),
        ("1,2.5", "options.gangs: '2.5' is not a whole number"),
        (0, "options.gangs=0: 0 machines cannot run a job"),
        ("-2,1", "options.gangs='-2,1': -2 machines cannot run a job"),
        ("1,5", "options.gangs='1,5': at most 4 may be rented at once"),
        (True, "options.gangs"),
        (None, "options.gangs"),
    ],
)
def test_what_is_no_number_of_machines_is_an_error_with_the_reason(gangs: object, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        recipes.build(msgspec.structs.replace(SPEC, recipe="scispot", options={"gangs": gangs}))
    assert message in str(caught.value)
    assert caught.value.hint


def test_machines_cannot_be_chosen_by_the_space_as_well() -> None:
    space = Space(params={"x": Float(low=0.0, high=1.0), "vm": machine_type("small")})
    with pytest.raises(SpecError, match="but vm in the space would choose them too"):
        recipes.build(msgspec.structs.replace(SPEC, recipe="scispot", space=space, options={"gangs": "1,2"}))
