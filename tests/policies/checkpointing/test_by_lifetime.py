"""Saves by the checkpoint programme, and by Young and Daly."""

from __future__ import annotations

from math import sqrt

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Policy
from shoestring.kernel.records import Account, Pace, Settled
from shoestring.market.preemptible_2019 import SCALE_S, SHAPE
from shoestring.models.lifetimes.checkpoint_schedule import Costs, schedule_for
from shoestring.models.lifetimes.families import Weibull
from shoestring.models.lifetimes.fit import LEAST_DEATHS
from shoestring.models.lifetimes.groups import LifetimeGroup, LifetimeGroups
from shoestring.models.lifetimes.saved import SavedLifetimes
from shoestring.models.lifetimes.source import LifetimeSource
from shoestring.models.speed.latencies import SAVE_S
from shoestring.policies.checkpointing.by_lifetime import UNTIMED_EVERY_S, ByLifetime
from shoestring.policies.checkpointing.young_daly import YoungDaly
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, Story, story

HOUR_S = 3600.0
SPOT_LISTING = replace(SPEC.listings[0], max_life_s=24 * HOUR_S)
WEIBULL = Weibull(scale_s=SCALE_S, shape=SHAPE, limit_s=24 * HOUR_S)
GROUPS = LifetimeGroups(trait="machine", strength=1.0, kinds={"other": LifetimeGroup(deaths=9.0, expected=1.0)})
KNOWN = LifetimeSource(
    SavedLifetimes(name="weibull_atom", by="likelihood", machines=9, taken=9, pooled=WEIBULL, kinds=(GROUPS,))
)
LONG = replace(SPEC, listings=(SPOT_LISTING, SPEC.listings[1]), max_steps=100, deadline_s=20 * 24 * HOUR_S)


def started(policy: Policy, *, timed_s: float | None, age_s: float = 0.0) -> tuple[Story, list[d.Decision]]:
    """A job that starts on a machine of this age, after an earlier job that took this many seconds per step."""
    run = story(Cheapest(), policy, lease="l0", job="j0", spec=LONG)
    run.state.jobs["j0"].until_step = 100
    if timed_s is not None:
        run.add("j1", until_step=100)
        run.state.jobs["j1"].status = "finished"
        run.state.waiting.pop("j1", None)
        run.state.jobs["j1"].paces["small", 1] = Pace(100, 100 * timed_s)
        run.state.settled.append(Settled("j1", "finished", 100, 100, None))
    run.state.leases["l0"].granted_at = 1.0 - age_s
    return run, run.tell(e.TimerFired(at=1.0, name="tick"))


def plans(decisions: list[d.Decision]) -> list[float]:
    return [x.every_s for x in decisions if isinstance(x, d.PlanSaves)]


def test_until_a_job_is_timed_saves_come_every_quarter_of_an_hour() -> None:
    _, decisions = started(ByLifetime(KNOWN), timed_s=None)
    assert plans(decisions) == [900.0]


def test_a_new_machine_saves_sooner_than_one_that_has_proved_itself() -> None:
    (new,), (proved,) = (plans(started(ByLifetime(KNOWN), timed_s=432.0, age_s=age)[1]) for age in (0.0, 6 * HOUR_S))
    assert new < 0.6 * proved


def test_after_every_save_the_next_is_planned_anew() -> None:
    run, decisions = started(ByLifetime(KNOWN), timed_s=432.0)
    run.tell(e.SegmentStarted(at=2.0, segment="s0"))
    (first,) = plans(decisions)
    run.happened(e.JobReported(at=2.0 + 6 * 432.0, segment="s0", job="j0", step=6, metrics={}))
    (second,) = plans(run.tell(replace(run.save("j0", 6), took_s=SAVE_S)))
    assert second > first


def test_a_short_job_on_a_safe_machine_is_not_saved_before_its_end() -> None:
    _, decisions = started(ByLifetime(KNOWN), timed_s=9.0, age_s=6 * HOUR_S)
    (plan,) = [x for x in decisions if isinstance(x, d.PlanSaves)]
    assert "not worth a save" in plan.why
    assert plan.every_s >= 900.0


def test_a_machine_near_the_end_of_its_day_is_left_right_after_a_save() -> None:
    run, _ = started(ByLifetime(KNOWN), timed_s=432.0, age_s=23.97 * HOUR_S)
    run.tell(e.SegmentStarted(at=2.0, segment="s0"))
    (halt,) = run.tell(run.save("j0", 1))
    assert isinstance(halt, d.HaltSegment)
    assert "a new one is expected to do it sooner" in halt.why


@pytest.mark.parametrize("policy", [ByLifetime(KNOWN), YoungDaly(KNOWN)])
def test_machines_on_demand_are_saved_on_periodically(policy: Policy) -> None:
    """They are not preempted, but may be lost all the same: so it is with nodes of one's own."""
    run = story(Cheapest(), policy, lease="l0", job="j0", offer=ON_DEMAND_OFFER, spec=LONG)
    assert plans(run.tell(e.TimerFired(at=1.0, name="tick"))) == [UNTIMED_EVERY_S]


def test_where_nothing_is_known_of_lifetimes_saves_are_periodic_however_safe_the_guess() -> None:
    run, decisions = started(ByLifetime(LifetimeSource()), timed_s=9.0, age_s=6 * HOUR_S)
    (plan,) = [x for x in decisions if isinstance(x, d.PlanSaves)]
    assert plan.every_s == UNTIMED_EVERY_S
    assert "nothing is known" in plan.why
    run.tell(e.SegmentStarted(at=2.0, segment="s0"))
    assert run.tell(run.save("j0", 1)) == []  # the interval stands


def test_once_machines_of_the_run_were_preempted_the_programme_plans() -> None:
    run, _ = started(ByLifetime(LifetimeSource()), timed_s=432.0)
    lives = [2 * HOUR_S] * LEAST_DEATHS
    account = Account(leases=len(lives), seconds=sum(lives), revoked=len(lives), lifetimes_s=lives)
    run.state.accounts[SPOT_LISTING.offer] = account
    run.tell(e.SegmentStarted(at=2.0, segment="s0"))
    (plan,) = [x for x in run.tell(run.save("j0", 1)) if isinstance(x, d.PlanSaves)]
    assert "the next save pays in" in plan.why


def test_a_gang_sees_the_limit_of_its_oldest_machine() -> None:
    """Two of them, one nearly a day old: both stop with it, so the save comes before."""
    costs, work_s = Costs(save_s=60.0, restart_s=120.0), 4 * HOUR_S
    alike = schedule_for(WEIBULL, work_s, costs, (6 * HOUR_S, 6 * HOUR_S)).next_save_s(work_s, 6 * HOUR_S)
    older = schedule_for(WEIBULL, work_s, costs, (6 * HOUR_S, 23.3 * HOUR_S)).next_save_s(work_s, 6 * HOUR_S)
    assert alike is not None
    assert older is not None
    assert older + costs.save_s <= 0.7 * HOUR_S < alike


@pytest.mark.parametrize("policy", [ByLifetime(KNOWN), YoungDaly(KNOWN)])
def test_a_notice_is_answered_as_always(policy: Policy) -> None:
    run, _ = started(policy, timed_s=None)
    (halt,) = [
        x for x in run.tell(e.RevocationNoticed(at=50.0, lease="l0", gone_at=170.0)) if isinstance(x, d.HaltSegment)
    ]
    assert halt.grace_s == 120.0


def test_young_and_dalys_interval_is_the_root_of_twice_save_times_life() -> None:
    _, decisions = started(YoungDaly(KNOWN, mean_life_s=HOUR_S), timed_s=None)
    assert plans(decisions) == [pytest.approx(sqrt(2 * SAVE_S * HOUR_S))]


def test_by_default_young_daly_uses_the_mean_lifetime_of_the_model() -> None:
    (literature,), (fair,) = (
        plans(started(YoungDaly(KNOWN, mean_life_s=life_s), timed_s=None)[1]) for life_s in (HOUR_S, None)
    )
    assert 3.5 < fair / literature < 4.5  # the root of 16.6 hours by one
