"""Gangs: workers of one trial on as few machines of one zone as possible; clusters that shrink with their work."""

from __future__ import annotations

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing, Offer
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.testing.story import SPEC, SPOT, ConstantPrices, Story, story

TICK = e.TimerFired(at=10.0, name="tick")
OTHER_ZONE = Offer(provider="aws", zone="b", machine="small", spot=True)
WIDE = replace(SPEC, listings=tuple(replace(listing, slots=4) for listing in SPEC.listings))
TWO_ZONES = replace(
    WIDE,
    listings=(*WIDE.listings, Listing(offer=OTHER_ZONE, vcpus=2, memory_gb=8, slots=4, on_demand_usd_per_hour=1.0)),
)


def machines(*leases: str, policy=None, spec=WIDE, offer: Offer = SPOT) -> Story:
    run = story(policy or Cheapest(), spec=spec)
    for lease in leases:
        run.rent(lease, offer=offer)
    return run


def occupy(run: Story, job: str, lease: str, slots: int) -> None:
    run.add(job, until_step=9, slots=slots)
    run.start(f"s{run.state.segments_made}", job, lease)


def started(decisions: list[d.Decision]) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
    return [(x.leases, x.slots_on) for x in decisions if isinstance(x, d.StartSegment)]


def test_a_gang_runs_on_one_machine_where_one_has_room() -> None:
    run = machines("l0", "l1")
    run.add("j0", until_step=9, slots=4)
    assert started(run.tell(TICK)) == [(("l0",), (4,))]


def test_else_on_as_few_as_possible() -> None:
    run = machines("l0", "l1", "l2", "l3")
    for number, (lease, slots) in enumerate((("l0", 3), ("l1", 2), ("l2", 1), ("l3", 3))):
        occupy(run, f"j{number}", lease, slots)
    run.add("j4", until_step=9, slots=4)
    assert started(run.tell(TICK)) == [(("l2", "l0"), (3, 1))]


def test_a_gang_never_spans_zones() -> None:
    run = machines("l0", spec=TWO_ZONES)
    run.rent("l1", offer=OTHER_ZONE)
    run.add("j0", until_step=9, slots=8)
    assert started(run.tell(TICK)) == []


def test_machines_for_a_gang_are_rented_where_it_has_some_even_if_others_are_cheaper() -> None:
    run = machines("l0", spec=TWO_ZONES)
    run.feed = run.state.feed = ConstantPrices(dict.fromkeys(run.view.listings, 1.0) | {SPOT: 0.5, OTHER_ZONE: 0.1})
    run.add("j0", until_step=9, slots=8)
    assert [x.offer for x in run.tell(TICK) if isinstance(x, d.RequestLease)] == [SPOT]


def test_a_machine_is_kept_for_a_gang_whose_other_machine_is_pending() -> None:
    run = machines("l0", policy=Cheapest(idle_s=0.0))
    run.add("j0", until_step=9, slots=8)
    assert not [x for x in run.tell(TICK) if isinstance(x, d.ReleaseLease)]
    assert started(run.tell(e.LeaseGranted(at=40.0, lease="l1"))) == [(("l0", "l1"), (4, 4))]


def test_a_gang_that_cannot_be_paid_at_once_ends_the_run_instead_of_renting_half_of_it_for_ever() -> None:
    run = machines(policy=OnDemand(), spec=replace(WIDE, budget_usd=0.03))
    run.add("j0", until_step=9, slots=8)
    (decided,) = run.tell(TICK)
    assert decided == d.WindDown(reason="out_of_budget", why="$0.03 left in the budget cannot pay 8 slots at once")


def test_work_is_packed_so_that_a_machine_can_be_released() -> None:
    run = machines("l0", "l1", policy=Cheapest(idle_s=0.0, consolidates=True))
    occupy(run, "j0", "l0", 2)
    occupy(run, "j1", "l1", 1)
    (halt,) = run.tell(TICK)
    assert (halt.segment, halt.why) == ("s1", "moved: it fits on another machine, and l1 can be released")
    moved = run.end("j1", "halted", step=0)
    assert started(moved) == [(("l0",), (1,))]
    assert d.ReleaseLease(lease="l1", why="idle: no work is left for it") in moved


def test_all_machines_that_can_be_emptied_are_emptied_at_once() -> None:
    run = machines("l0", "l1", "l2", "l3", policy=Cheapest(idle_s=0.0, consolidates=True))
    for number, used in enumerate((1, 2, 1, 3)):
        occupy(run, f"j{number}", f"l{number}", used)
    assert [halt.segment for halt in run.tell(TICK)] == ["s0", "s2"]
    moved = [started(run.end(job, "halted", step=0)) for job in ("j0", "j2")]
    assert moved == [[(("l3",), (1,))], [(("l1",), (1,))]]


def test_nothing_is_packed_while_slots_are_about_to_become_free() -> None:
    run = machines("l0", "l1", policy=Cheapest(idle_s=0.0, consolidates=True))
    occupy(run, "j0", "l0", 2)
    occupy(run, "j1", "l1", 1)
    run.order(d.DropJob(job="j1", why="pruned"))
    assert run.tell(TICK) == []


def test_nothing_is_packed_where_it_would_not_fit_or_would_not_pay() -> None:
    run = machines("l0", "l1", policy=Cheapest(consolidates=True))
    occupy(run, "j0", "l0", 3)
    occupy(run, "j1", "l1", 2)
    assert run.tell(TICK) == []
    run = machines("l0", "l1", policy=Cheapest(consolidates=True))
    occupy(run, "j0", "l0", 1)
    occupy(run, "j1", "l1", 1)
    assert not run.tell(e.TimerFired(at=SPEC.deadline_s - 599, name="tick"))


def test_gangs_start_first_so_that_single_workers_do_not_scatter_them() -> None:
    run = machines("l0", "l1", policy=Cheapest(consolidates=True))
    run.add("j0", until_step=9, slots=1)
    run.add("j1", until_step=9, slots=4)
    assert started(run.tell(TICK)) == [(("l0",), (4,)), (("l1",), (1,))]
