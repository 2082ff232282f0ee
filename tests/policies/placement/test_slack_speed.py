"""Fast and slow machines in `slack`: what counts is the price of the work, and what is promised is what was timed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Pace
from shoestring.kernel.types import Listing, Offer
from shoestring.policies.placement.slack.policy import WATCH, Slack
from shoestring.policies.placement.slack.speed import SlackSpeeds, own_paces
from shoestring.policies.placement.slack.trial_slack import SlackContext, net_of
from shoestring.testing.story import SPEC, ConstantPrices, Story

HOUR = 3600.0


def machine(name: str, vcpus: float, usd: float, *, spot: bool) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=name, spot=spot)
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, on_demand_usd_per_hour=usd)


SLOW, FAST = machine("slow", 2, 1.0, spot=True), machine("fast", 8, 3.0, spot=True)
SLOW_KEPT, FAST_KEPT = machine("slow", 2, 1.0, spot=False), machine("fast", 8, 3.0, spot=False)
ALL = (SLOW, FAST, SLOW_KEPT, FAST_KEPT)


def told(listings: tuple[Listing, ...] = ALL, *, fast_usd: float = 0.9, paces: dict[str, float] | None = None) -> Story:
    """A trial of nine steps waits; so many seconds a step it was timed at on machines that it had before."""
    run = Story(Slack(), spec=replace(SPEC, listings=listings))
    prices = {SLOW.offer: 0.3, FAST.offer: fast_usd}
    run.feed = run.state.feed = ConstantPrices({x.offer: x.on_demand_usd_per_hour for x in listings} | prices)
    run.happened(e.RunStarted(at=0.0, spec=run.spec, seed=0))
    run.add("j0", until_step=9)
    for name, seconds in (paces or {}).items():
        run.state.jobs["j0"].paces[name, 1] = Pace(4, 4 * seconds)
    return run


def asked_for(run: Story, at: float = 10.0) -> list[Offer]:
    return [x.offer for x in run.tell(e.TimerFired(at=at, name="tick")) if isinstance(x, d.RequestLease)]


@pytest.mark.parametrize(("fast_s", "best"), [(100.0, FAST), (390.0, SLOW)])
def test_of_a_cheap_slow_machine_and_a_dear_fast_one_it_takes_the_cheaper_step(fast_s: float, best: Listing) -> None:
    run = told(paces={"slow": 400.0, "fast": fast_s})  # a third of the price
    assert asked_for(run) == [best.offer]


@pytest.mark.parametrize(("fast_s", "best"), [(100.0, FAST_KEPT), (390.0, SLOW_KEPT)])
def test_of_machines_that_stay_likewise(fast_s: float, best: Listing) -> None:
    run = told((SLOW_KEPT, FAST_KEPT), paces={"slow": 400.0, "fast": fast_s})
    assert asked_for(run) == [best.offer]


@pytest.mark.parametrize(("fast_usd", "best"), [(0.7, FAST), (0.9, SLOW)])
def test_before_anything_is_timed_four_times_the_cores_count_for_less(fast_usd: float, best: Listing) -> None:
    assert asked_for(told(fast_usd=fast_usd)) == [best.offer]


def test_of_machines_that_stay_it_takes_one_that_is_still_in_time() -> None:
    run = told((SLOW_KEPT, FAST_KEPT), paces={"slow": 400.0, "fast": 200.0})  # the slow one is the cheaper step
    assert asked_for(run, at=6 * HOUR - 3000) == [FAST_KEPT.offer]


def test_a_machine_that_is_too_slow_to_be_in_time_is_no_bargain() -> None:
    run = told(paces={"slow": 2000.0, "fast": 1000.0})
    assert asked_for(run) == [SLOW.offer]
    late = told(paces={"slow": 2000.0, "fast": 1000.0})
    assert asked_for(late, at=2 * HOUR) == [FAST.offer]  # five hours of work there, and four are left


def test_where_every_spot_machine_is_too_slow_nobody_waits_for_one() -> None:
    run = told((SLOW, FAST_KEPT), paces={"slow": 2000.0, "fast": 1000.0})
    assert asked_for(run, at=2 * HOUR) == [FAST_KEPT.offer]


def test_nothing_is_promised_of_a_machine_that_nobody_was_timed_on() -> None:
    run = told((SLOW, FAST_KEPT), paces={"slow": 400.0})
    net = net_of(SlackContext(run.view), run.state.jobs["j0"])
    assert net is not None
    assert net.seconds_per_step == 400.0, "it has four times the cores, and may be no faster"
    assert [offer for offer, _ in net.kept] == [FAST_KEPT.offer]


def test_work_is_reckoned_at_the_pace_of_the_machine_that_would_be_used() -> None:
    run = told((SLOW, FAST, SLOW_KEPT), paces={"slow": 400.0, "fast": 100.0})
    net = net_of(SlackContext(run.view), run.state.jobs["j0"])
    assert net is not None
    assert net.now.work_left_s == 9 * 400.0
    assert net.kept_usd_per_hour == pytest.approx(1.0)


def test_a_pace_is_carried_over_to_machines_that_other_trials_were_timed_on() -> None:
    run = told(paces={"slow": 400.0})
    run.add("j1", until_step=9)
    run.rent("l0", offer=SLOW.offer, end_by=6 * HOUR)
    run.start("s0", "j1", "l0", running_since=0.0)
    run.state.jobs["j1"].paces["fast", 1] = Pace(4, 400.0)
    run.happened(replace(run.report("j1", 5, 0.5), at=1000.0))  # half as long a step as that of the other
    job, other = run.state.jobs["j0"], run.state.jobs["j1"]
    assert own_paces(run.view, other) == {("fast", 1): 100.0, ("slow", 1): 200.0}
    speeds = SlackSpeeds(run.view)
    expected_s = speeds.seconds_per_step(speeds.known(job), FAST, 1)
    assert 80.0 < expected_s < 400.0


def test_a_trial_without_a_pace_is_taken_to_be_like_those_that_run() -> None:
    run = told()
    run.rent("l0", offer=SLOW.offer, end_by=6 * HOUR)
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", 2, 0.5), at=500.0))
    run.add("j1", until_step=9)
    assert SlackSpeeds(run.view).known(run.state.jobs["j1"]) == {("slow", 1): 250.0}


def test_a_pace_on_fewer_slots_is_not_taken_for_that_on_more() -> None:
    large = replace(SLOW, slots=4, vcpus=8)
    run = told((large, replace(SLOW_KEPT, slots=4, vcpus=8)), paces={"slow": 400.0})
    run.order(d.RunJob(job="j0", until_step=9, slots=4, why="the story"))
    ((where, seconds),) = SlackSpeeds(run.view).known(run.state.jobs["j0"]).items()
    assert where == ("slow", 4)
    assert 100.0 < seconds < 200.0


def test_it_moves_to_a_dearer_machine_whose_steps_are_cheaper() -> None:
    run = told((*ALL,), fast_usd=0.4, paces={"fast": 250.0})
    run.rent("l0", offer=SLOW.offer, end_by=6 * HOUR)
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", 1, 0.5), at=1500.0))
    run.happened(replace(run.save("j0", 1), at=1500.0))
    decided = run.tell(e.TimerFired(at=1500.0, name=WATCH))
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [FAST.offer]
