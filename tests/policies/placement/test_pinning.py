"""Trials whose configurations name machines: pinned there, rented for each by itself, all together or not at all."""

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


def run_job(run: Story, job: str, **config) -> None:
    """A search decides RunJob, as any search does."""
    run.order(
        d.AddJob(job=JobId(job), config={"x": 0.5, **config}, why="the story"),
        d.RunJob(job=JobId(job), until_step=9, slots=run.spec.slots, why="the story"),
    )


def requested(decisions: list[d.Decision]) -> list[Offer]:
    return [x.offer for x in decisions if isinstance(x, d.RequestLease)]


def pinned_to(decisions: list[d.Decision]) -> list[tuple[Offer | None, int]]:
    return [(x.offer, x.slots) for x in decisions if isinstance(x, d.RunJob)]


WAKE = e.LeaseEnded(at=5.0, lease=LeaseId("l99"), cause="released", charged_usd=0.0)


class RunsAgain:
    """A search that decides RunJob again for a running trial."""

    wants = frozenset({e.TimerFired})

    def decide(self, _state, _event) -> Iterator[d.Decision]:
        yield d.RunJob(job=JobId("j0"), until_step=9, slots=1, why="to the last step")


# -- pinning --------------------------------------------------------------------------------------------------------
def test_a_trial_is_pinned_to_the_offer_that_it_names_with_all_slots_of_its_machines() -> None:
    run = joint(Pinning())
    run_job(run, "j0", type="large", count=3, where="b", spot=False)
    assert run.tell(WAKE) == [
        d.RunJob(job="j0", until_step=9, slots=6, offer=offer("large", "b", spot=False), why=ANY),
    ]
    assert run.state.jobs["j0"].slots == 6


def test_of_what_it_leaves_open_it_gets_the_cheapest_now() -> None:
    run = joint(Pinning())
    run_job(run, "j0", type="small")
    run_job(run, "j1", type="large")
    run_job(run, "j2", type="small", spot=False, where="b")
    assert pinned_to(run.tell(WAKE)) == [
        (offer("small", "b"), 1),
        (offer("large", "a"), 2),
        (offer("small", "b", spot=False), 1),
    ]


def test_where_only_on_demand_is_wanted_what_is_open_is_on_demand() -> None:
    run = joint(Pinning(only_on_demand=True))
    run_job(run, "j0", type="small", where="a")
    assert pinned_to(run.tell(WAKE)) == [(offer("small", "a", spot=False), 1)]


def test_an_idle_machine_comes_before_a_cheaper_one_and_serves_one_trial() -> None:
    run = joint(Pinning())
    run.rent("l0", offer=offer("small", "a"))
    run_job(run, "j0", type="small")
    run_job(run, "j1", type="small")
    assert pinned_to(run.tell(WAKE)) == [(offer("small", "a"), 1), (offer("small", "b"), 1)]


def test_nothing_is_decided_twice() -> None:
    run = joint(Pinning())
    run_job(run, "j0", type="small")
    run.tell(WAKE)
    assert run.tell(replace(WAKE, lease=LeaseId("l98"))) == []


def test_a_trial_whose_offer_was_denied_goes_to_another_if_its_configuration_allows_one() -> None:
    run = joint()
    run_job(run, "j0", type="small", spot=True)
    run_job(run, "j1", type="small", spot=True, where="b")
    assert requested(run.tell(WAKE)) == [offer("small", "b")] * 2
    decided = run.tell(e.LeaseDenied(at=20.0, lease=LeaseId("l0"), reason="no_capacity"))
    assert pinned_to(decided) == []  # the other pending one is for the first trial now
    decided = run.tell(e.LeaseDenied(at=25.0, lease=LeaseId("l1"), reason="no_capacity"))
    assert pinned_to(decided) == [(offer("small", "a"), 1)]
    assert requested(decided) == [offer("small", "a")]
    assert "retry-placement" in run.state.timers  # for the trial that names this offer


def test_a_running_trial_with_a_new_run_job_stays_where_it_is() -> None:
    run = joint(Pinning())
    run_job(run, "j0", type="large", where="a", spot=True)
    run.tell(WAKE)
    run.rent("l0", offer=offer("large", "a"))
    run.start("s0", "j0", "l0")

    longer = Story(RunsAgain(), Pinning(), spec=run.spec)
    longer.state, longer.feed = run.state, run.feed
    longer.tell(TICK)
    assert not run.state.draining
    assert (run.state.jobs["j0"].offer, run.state.jobs["j0"].slots) == (offer("large", "a"), 2)


def test_a_trial_whose_machines_are_not_on_offer_is_pruned_with_the_reason() -> None:
    run = joint(Pinning())
    run_job(run, "j0", type="huge")
    run_job(run, "j1", type="small", count=5)
    why = "pruned: this run cannot rent the machines that its configuration names"
    assert run.tell(WAKE) == [d.DropJob(job="j0", why=why), d.DropJob(job="j1", why=why)]


def test_the_price_of_a_configuration_is_that_of_all_its_machines_now() -> None:
    view = joint(Pinning()).view
    assert pinned_price(view, {"type": "large", "where": "b", "spot": True, "count": 3}) == pytest.approx(2.7)
    assert pinned_price(view, {"type": "small"}) == pytest.approx(0.2)
    assert pinned_price(view, {"type": "huge"}) == math.inf


# -- renting --------------------------------------------------------------------------------------------------------
def test_each_trial_gets_its_own_machines_rented() -> None:
    run = joint()
    run_job(run, "j0", type="small", where="a", spot=True, count=2)
    run_job(run, "j1", type="large", where="a", spot=False)
    assert requested(run.tell(WAKE)) == [offer("small")] * 2 + [offer("large", spot=False)]


def test_a_gang_starts_when_the_last_of_its_machines_is_up_and_no_other_trial_uses_the_first_ones() -> None:
    run = joint(max_machines=5)
    run_job(run, "j0", type="small", where="a", spot=True, count=2)
    run_job(run, "j1", type="small", where="a", spot=True)
    assert requested(run.tell(WAKE)) == [offer("small")] * 3
    assert not [x for x in run.tell(e.LeaseGranted(at=20.0, lease=LeaseId("l0"))) if isinstance(x, d.StartSegment)]
    decided = run.tell(e.LeaseGranted(at=30.0, lease=LeaseId("l2")))
    assert [(x.job, x.leases) for x in decided if isinstance(x, d.StartSegment)] == [("j0", ("l0", "l2"))]
    decided = run.tell(e.LeaseGranted(at=40.0, lease=LeaseId("l1")))
    assert [(x.job, x.leases) for x in decided if isinstance(x, d.StartSegment)] == [("j1", ("l1",))]


def test_nothing_is_rented_behind_a_trial_whose_machines_may_not_be_rented_yet() -> None:
    run = joint(max_machines=3)
    run_job(run, "j0", type="large", where="a", spot=True)
    run.tell(WAKE)
    run.happened(e.LeaseGranted(at=6.0, lease=LeaseId("l0")))
    run.start("s0", "j0", "l0")
    run_job(run, "j1", type="small", where="a", spot=True, count=3)
    run_job(run, "j2", type="small", where="b", spot=True)
    assert requested(run.tell(replace(WAKE, lease=LeaseId("l98")))) == []


def test_idle_machines_that_fit_no_trial_make_room() -> None:
    run = joint(max_machines=1)
    run.rent("l0", offer=offer("large", "a"))
    run_job(run, "j0", type="small", where="a", spot=True)
    decided = run.tell(WAKE)
    assert [x.lease for x in decided if isinstance(x, d.ReleaseLease)] == ["l0"]
    assert requested(decided) == [offer("small")]


def test_all_machines_of_a_gang_are_prepaid_alike_when_money_is_short() -> None:
    run = joint(budget_usd=0.5)  # three at a dollar an hour: a whole slice would be 0.75
    run_job(run, "j0", type="small", where="a", spot=True, count=3)
    decided = [x for x in run.tell(WAKE) if isinstance(x, d.RequestLease)]
    assert [x.end_by - 5.0 for x in decided] == [450.0] * 3


def test_a_run_whose_next_machines_cannot_be_paid_ends_with_the_reason() -> None:
    run = joint(budget_usd=0.05)
    run_job(run, "j0", type="large", where="a", spot=True, count=3)
    assert run.tell(WAKE)[-1] == d.WindDown(
        reason="out_of_budget", why="$0.05 left in the budget cannot pay 3 x large spot in a"
    )


def test_an_expensive_trial_does_not_keep_a_cheap_one_waiting() -> None:
    run = joint(budget_usd=0.2)
    run_job(run, "j0", type="large", where="a", spot=True, count=3)
    run_job(run, "j1", type="small", where="a", spot=True)
    decided = run.tell(WAKE)
    assert requested(decided) == [offer("small")]
    assert not [x for x in decided if isinstance(x, d.WindDown)]


def test_a_spot_machine_above_the_on_demand_price_is_not_requested() -> None:
    run = joint()
    run.feed = run.state.feed = ConstantPrices({**USD, offer("small", "a"): 1.5})
    run_job(run, "j0", type="small", where="a", spot=True)
    decided = run.tell(WAKE)
    assert requested(decided) == []
    assert d.WakeAt(name="retry-placement", at=65.0, why=ANY) in decided


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
