"""Fast and slow machines in `slack`: what counts is the price of the work, and only measured speeds are relied on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Pace
from shoestring.kernel.types import Listing, Offer
from shoestring.policies.placement.slack.per_trial import SlackContext, slack_of
from shoestring.policies.placement.slack.policy import WATCH, Slack
from shoestring.policies.placement.slack.speed import SlackSpeeds, own_paces
from shoestring.testing.story import SPEC, ConstantPrices, Story

HOUR = 3600.0


def machine(name: str, vcpus: float, usd: float, *, spot: bool) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=name, spot=spot)
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, on_demand_usd_per_hour=usd)


SLOW, FAST = machine("slow", 2, 1.0, spot=True), machine("fast", 8, 3.0, spot=True)
SLOW_ON_DEMAND, FAST_ON_DEMAND = machine("slow", 2, 1.0, spot=False), machine("fast", 8, 3.0, spot=False)
ALL = (SLOW, FAST, SLOW_ON_DEMAND, FAST_ON_DEMAND)


def waiting_trial(
    listings: tuple[Listing, ...] = ALL, *, fast_usd: float = 0.9, paces: dict[str, float] | None = None
) -> Story:
    """A trial of nine steps waits; `paces` are the seconds per step measured on machines that it had before."""
    run = Story(Slack(), spec=replace(SPEC, listings=listings))
    prices = {SLOW.offer: 0.3, FAST.offer: fast_usd}
    run.feed = run.state.feed = ConstantPrices({x.offer: x.on_demand_usd_per_hour for x in listings} | prices)
    run.happened(e.RunStarted(at=0.0, spec=run.spec, seed=0))
    run.add("j0", until_step=9)
    for name, seconds in (paces or {}).items():
        run.state.jobs["j0"].paces[name, 1] = Pace(4, 4 * seconds)
    return run


def requested(run: Story, at: float = 10.0) -> list[Offer]:
    return [x.offer for x in run.tell(e.TimerFired(at=at, name="tick")) if isinstance(x, d.RequestLease)]


@pytest.mark.parametrize(("fast_s", "best"), [(100.0, FAST), (390.0, SLOW)])
def test_of_a_cheap_slow_machine_and_an_expensive_fast_one_the_cheaper_step_wins(fast_s: float, best: Listing) -> None:
    run = waiting_trial(paces={"slow": 400.0, "fast": fast_s})  # a third of the price
    assert requested(run) == [best.offer]


@pytest.mark.parametrize(("fast_s", "best"), [(100.0, FAST_ON_DEMAND), (390.0, SLOW_ON_DEMAND)])
def test_of_on_demand_machines_likewise(fast_s: float, best: Listing) -> None:
    run = waiting_trial((SLOW_ON_DEMAND, FAST_ON_DEMAND), paces={"slow": 400.0, "fast": fast_s})
    assert requested(run) == [best.offer]


@pytest.mark.parametrize(("fast_usd", "best"), [(0.7, FAST), (0.9, SLOW)])
def test_before_anything_is_timed_four_times_the_cores_count_for_less(fast_usd: float, best: Listing) -> None:
    assert requested(waiting_trial(fast_usd=fast_usd)) == [best.offer]


def test_of_on_demand_machines_one_is_chosen_that_is_still_in_time() -> None:
    run = waiting_trial(
        (SLOW_ON_DEMAND, FAST_ON_DEMAND), paces={"slow": 400.0, "fast": 200.0}
    )  # the slow one is the cheaper step
    assert requested(run, at=6 * HOUR - 3000) == [FAST_ON_DEMAND.offer]


def test_a_machine_that_is_too_slow_to_be_in_time_is_no_bargain() -> None:
    run = waiting_trial(paces={"slow": 2000.0, "fast": 1000.0})
    assert requested(run) == [SLOW.offer]
    late = waiting_trial(paces={"slow": 2000.0, "fast": 1000.0})
    assert requested(late, at=2 * HOUR) == [FAST.offer]  # five hours of work there, and four are left


def test_where_every_spot_machine_is_too_slow_no_trial_waits_for_one() -> None:
    run = waiting_trial((SLOW, FAST_ON_DEMAND), paces={"slow": 2000.0, "fast": 1000.0})
    assert requested(run, at=2 * HOUR) == [FAST_ON_DEMAND.offer]


def test_an_untimed_machine_counts_as_slow_as_the_slowest_known() -> None:
    run = waiting_trial((SLOW, FAST_ON_DEMAND), paces={"slow": 400.0})
    trial_slack = slack_of(SlackContext(run.view), run.state.jobs["j0"])
    assert trial_slack is not None
    assert trial_slack.seconds_per_step == 400.0, "it has four times the cores, and may be no faster"
    assert [offer for offer, _ in trial_slack.on_demand] == [FAST_ON_DEMAND.offer]


def test_work_is_measured_at_the_pace_of_the_fallback() -> None:
    run = waiting_trial((SLOW, FAST, SLOW_ON_DEMAND), paces={"slow": 400.0, "fast": 100.0})
    trial_slack = slack_of(SlackContext(run.view), run.state.jobs["j0"])
    assert trial_slack is not None
    assert trial_slack.now.work_left_s == 9 * 400.0
    assert trial_slack.on_demand_usd_per_hour == pytest.approx(1.0)


def test_a_pace_is_carried_over_to_machines_that_other_trials_were_timed_on() -> None:
    run = waiting_trial(paces={"slow": 400.0})
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


def test_a_trial_without_a_pace_is_expected_to_be_like_those_that_run() -> None:
    run = waiting_trial()
    run.rent("l0", offer=SLOW.offer, end_by=6 * HOUR)
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", 2, 0.5), at=500.0))
    run.add("j1", until_step=9)
    ((where, seconds),) = SlackSpeeds(run.view).known(run.state.jobs["j1"]).items()
    assert where == ("slow", 1)
    assert 250.0 < seconds < 1.4 * 250.0  # a little longer: only one was timed


def test_a_pace_on_fewer_slots_is_not_used_for_more_slots() -> None:
    large = replace(SLOW, slots=4, vcpus=8)
    run = waiting_trial((large, replace(SLOW_ON_DEMAND, slots=4, vcpus=8)), paces={"slow": 400.0})
    run.order(d.RunJob(job="j0", until_step=9, slots=4, why="the story"))
    ((where, seconds),) = SlackSpeeds(run.view).known(run.state.jobs["j0"]).items()
    assert where == ("slow", 4)
    assert 100.0 < seconds < 200.0


def test_it_moves_to_a_more_expensive_machine_whose_steps_are_cheaper() -> None:
    run = waiting_trial((*ALL,), fast_usd=0.4, paces={"fast": 250.0})
    run.rent("l0", offer=SLOW.offer, end_by=6 * HOUR)
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", 1, 0.5), at=1500.0))
    run.happened(replace(run.save("j0", 1), at=1500.0))
    decided = run.tell(e.TimerFired(at=1500.0, name=WATCH))
    assert [x.offer for x in decided if isinstance(x, d.RequestLease)] == [FAST.offer]
