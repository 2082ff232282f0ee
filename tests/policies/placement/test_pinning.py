"""Trials whose configurations name machines: sent there, rented for each by itself, all together or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import JobId, LeaseId, Listing, Offer
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.pinning import Pinning, pinned_price
from shoestring.space.space import Float, Space, machine_count, machine_type, on_spot, zone
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC, ConstantPrices, Story, story

TICK = e.TimerFired(at=10.0, name="tick")


def offer(machine: str, where: str = "a", *, spot: bool = True) -> Offer:
    return Offer(provider="aws", zone=where, machine=machine, spot=spot)


USD = {
    offer("small", "a"): 0.3,
    offer("small", "b"): 0.2,
    offer("large", "a"): 0.6,
    offer("large", "b"): 0.9,
    offer("small", "a", spot=False): 1.0,
    offer("small", "b", spot=False): 1.0,
    offer("large", "a", spot=False): 2.0,
    offer("large", "b", spot=False): 2.0,
}
MACHINES = {
    "type": machine_type("small", "large"),
    "count": machine_count(1, 3),
    "where": zone("a", "b"),
    "spot": on_spot(True, False),
}
SPEC_WITH_MACHINES = replace(
    SPEC,
    space=Space(params={"x": Float(0.0, 1.0), **MACHINES}),
    listings=tuple(
        Listing(
            offer=known,
            vcpus=2,
            memory_gb=8,
            slots=2 if known.machine == "large" else 1,
            on_demand_usd_per_hour=2.0 if known.machine == "large" else 1.0,
        )
        for known in USD
    ),
)


def joint(*policies, **changes) -> Story:
    run = story(*(policies or (Pinning(), Cheapest())), spec=replace(SPEC_WITH_MACHINES, **changes))
    run.feed = run.state.feed = ConstantPrices(USD)
    return run


def wish(run: Story, job: str, **config) -> None:
    """A search orders a trial to be run, as any search does."""
    run.order(
        d.AddJob(job=JobId(job), config={"x": 0.5, **config}, why="the story"),
        d.RunJob(job=JobId(job), until_step=9, slots=run.spec.slots, why="the story"),
    )


def asked_for(decisions: list[d.Decision]) -> list[Offer]:
    return [x.offer for x in decisions if isinstance(x, d.RequestLease)]


def sent_to(decisions: list[d.Decision]) -> list[tuple[Offer | None, int]]:
    return [(x.offer, x.slots) for x in decisions if isinstance(x, d.RunJob)]


WAKE = e.LeaseEnded(at=5.0, lease=LeaseId("l99"), cause="released", charged_usd=0.0)


class OnToTheEnd:
    """A search that orders a running trial again."""

    wants = frozenset({e.TimerFired})

    def decide(self, _state, _event) -> Iterator[d.Decision]:
        yield d.RunJob(job=JobId("j0"), until_step=9, slots=1, why="on to the end")


# -- where to -------------------------------------------------------------------------------------------------------
def test_a_trial_is_sent_to_the_offer_that_it_names_with_all_slots_of_its_machines() -> None:
    run = joint(Pinning())
    wish(run, "j0", type="large", count=3, where="b", spot=False)
    assert run.tell(WAKE) == [
        d.RunJob(job="j0", until_step=9, slots=6, offer=offer("large", "b", spot=False), why=ANY),
    ]
    assert run.state.jobs["j0"].slots == 6


def test_of_what_it_leaves_open_it_gets_the_cheapest_now() -> None:
    run = joint(Pinning())
    wish(run, "j0", type="small")
    wish(run, "j1", type="large")
    wish(run, "j2", type="small", spot=False, where="b")
    assert sent_to(run.tell(WAKE)) == [
        (offer("small", "b"), 1),
        (offer("large", "a"), 2),
        (offer("small", "b", spot=False), 1),
    ]


def test_where_only_on_demand_is_wanted_what_is_open_is_on_demand() -> None:
    run = joint(Pinning(only_on_demand=True))
    wish(run, "j0", type="small", where="a")
    assert sent_to(run.tell(WAKE)) == [(offer("small", "a", spot=False), 1)]


def test_a_machine_that_is_there_comes_before_a_cheaper_one_and_serves_one_trial() -> None:
    run = joint(Pinning())
    run.rent("l0", offer=offer("small", "a"))
    wish(run, "j0", type="small")
    wish(run, "j1", type="small")
    assert sent_to(run.tell(WAKE)) == [(offer("small", "a"), 1), (offer("small", "b"), 1)]


def test_nothing_is_said_twice() -> None:
    run = joint(Pinning())
    wish(run, "j0", type="small")
    run.tell(WAKE)
    assert run.tell(replace(WAKE, lease=LeaseId("l98"))) == []


def test_a_trial_whose_offer_was_denied_goes_to_another_if_its_configuration_allows_one() -> None:
    run = joint()
    wish(run, "j0", type="small", spot=True)
    wish(run, "j1", type="small", spot=True, where="b")
    assert asked_for(run.tell(WAKE)) == [offer("small", "b")] * 2
    told = run.tell(e.LeaseDenied(at=20.0, lease=LeaseId("l0"), reason="no_capacity"))
    assert sent_to(told) == []  # the other that was asked for is the first one's now
    told = run.tell(e.LeaseDenied(at=25.0, lease=LeaseId("l1"), reason="no_capacity"))
    assert sent_to(told) == [(offer("small", "a"), 1)]
    assert asked_for(told) == [offer("small", "a")]
    assert "retry-placement" in run.state.timers  # for the one that can go nowhere else


def test_a_running_trial_that_is_ordered_again_stays_where_it_is() -> None:
    run = joint(Pinning())
    wish(run, "j0", type="large", where="a", spot=True)
    run.tell(WAKE)
    run.rent("l0", offer=offer("large", "a"))
    run.start("s0", "j0", "l0")

    longer = Story(OnToTheEnd(), Pinning(), spec=run.spec)
    longer.state, longer.feed = run.state, run.feed
    longer.tell(TICK)
    assert not run.state.draining
    assert (run.state.jobs["j0"].offer, run.state.jobs["j0"].slots) == (offer("large", "a"), 2)


def test_what_is_nowhere_for_sale_is_given_up_with_words() -> None:
    run = joint(Pinning())
    wish(run, "j0", type="huge")
    wish(run, "j1", type="small", count=5)
    gone = "the machines that its configuration names are not to be had in this run"
    assert run.tell(WAKE) == [d.DropJob(job="j0", why=gone), d.DropJob(job="j1", why=gone)]


def test_the_price_of_a_configuration_is_that_of_all_its_machines_now() -> None:
    view = joint(Pinning()).view
    assert pinned_price(view, {"type": "large", "where": "b", "spot": True, "count": 3}) == pytest.approx(2.7)
    assert pinned_price(view, {"type": "small"}) == pytest.approx(0.2)
    assert pinned_price(view, {"type": "huge"}) == math.inf


# -- renting --------------------------------------------------------------------------------------------------------
def test_each_trial_gets_its_own_machines_rented() -> None:
    run = joint()
    wish(run, "j0", type="small", where="a", spot=True, count=2)
    wish(run, "j1", type="large", where="a", spot=False)
    assert asked_for(run.tell(WAKE)) == [offer("small")] * 2 + [offer("large", spot=False)]


def test_a_gang_starts_when_the_last_of_its_machines_is_there_and_nobody_takes_the_others() -> None:
    run = joint(max_machines=5)
    wish(run, "j0", type="small", where="a", spot=True, count=2)
    wish(run, "j1", type="small", where="a", spot=True)
    assert asked_for(run.tell(WAKE)) == [offer("small")] * 3
    assert not [x for x in run.tell(e.LeaseGranted(at=20.0, lease=LeaseId("l0"))) if isinstance(x, d.StartSegment)]
    told = run.tell(e.LeaseGranted(at=30.0, lease=LeaseId("l2")))
    assert [(x.job, x.leases) for x in told if isinstance(x, d.StartSegment)] == [("j0", ("l0", "l2"))]
    told = run.tell(e.LeaseGranted(at=40.0, lease=LeaseId("l1")))
    assert [(x.job, x.leases) for x in told if isinstance(x, d.StartSegment)] == [("j1", ("l1",))]


def test_nothing_is_rented_behind_a_trial_that_there_is_no_room_for() -> None:
    run = joint(max_machines=3)
    wish(run, "j0", type="large", where="a", spot=True)
    run.tell(WAKE)
    run.happened(e.LeaseGranted(at=6.0, lease=LeaseId("l0")))
    run.start("s0", "j0", "l0")
    wish(run, "j1", type="small", where="a", spot=True, count=3)
    wish(run, "j2", type="small", where="b", spot=True)
    assert asked_for(run.tell(replace(WAKE, lease=LeaseId("l98")))) == []


def test_idle_machines_that_fit_nobody_make_room() -> None:
    run = joint(max_machines=1)
    run.rent("l0", offer=offer("large", "a"))
    wish(run, "j0", type="small", where="a", spot=True)
    told = run.tell(WAKE)
    assert [x.lease for x in told if isinstance(x, d.ReleaseLease)] == ["l0"]
    assert asked_for(told) == [offer("small")]


def test_all_machines_of_a_gang_are_prepaid_alike_when_money_is_short() -> None:
    run = joint(budget_usd=0.5)  # three at a dollar an hour: a whole slice would be 0.75
    wish(run, "j0", type="small", where="a", spot=True, count=3)
    told = [x for x in run.tell(WAKE) if isinstance(x, d.RequestLease)]
    assert [x.end_by - 5.0 for x in told] == [450.0] * 3


def test_a_run_whose_next_machines_cannot_be_paid_ends_with_words() -> None:
    run = joint(budget_usd=0.05)
    wish(run, "j0", type="large", where="a", spot=True, count=3)
    assert run.tell(WAKE)[-1] == d.WindDown(why="$0.05 does not pay 3 x large spot in a any more")


def test_a_dear_trial_does_not_keep_a_cheap_one_waiting() -> None:
    run = joint(budget_usd=0.2)
    wish(run, "j0", type="large", where="a", spot=True, count=3)
    wish(run, "j1", type="small", where="a", spot=True)
    told = run.tell(WAKE)
    assert asked_for(told) == [offer("small")]
    assert not [x for x in told if isinstance(x, d.WindDown)]


def test_a_spot_machine_dearer_than_on_demand_is_not_asked_for() -> None:
    run = joint()
    run.feed = run.state.feed = ConstantPrices({**USD, offer("small", "a"): 1.5})
    wish(run, "j0", type="small", where="a", spot=True)
    told = run.tell(WAKE)
    assert asked_for(told) == []
    assert d.WakeAt(name="retry-placement", at=65.0, why=ANY) in told


# -- the contract ---------------------------------------------------------------------------------------------------
class _Recipe(PolicySuite):
    def policies(self, spec):
        return recipes.build(spec)


class TestRandom(_Recipe):
    spec = replace(SPEC_WITH_MACHINES, recipe="random")


class TestAshaOnZonesLeftOpen(_Recipe):
    open_zone = {name: param for name, param in MACHINES.items() if name in ("type", "count")}
    spec = replace(
        SPEC_WITH_MACHINES,
        recipe="asha",
        trials=12,
        space=Space(params={"x": Float(0.0, 1.0), **open_zone}),
        options={"placement": "cheapest"},
    )


class TestTpeOnRefunds(_Recipe):
    spec = replace(
        SPEC_WITH_MACHINES,
        recipe="tpe",
        space=Space(params={"x": Float(0.0, 1.0), "type": MACHINES["type"]}),
        options={"startup": 3, "placement": "refund_seeking"},
    )
