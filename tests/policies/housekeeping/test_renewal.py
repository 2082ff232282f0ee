"""Renewal: machines are prepaid slice by slice; the last slice ends with a save, not with a surprise."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.housekeeping.renewal import LAST_CALL, LEAVE, RENEW, Renewal
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.testing.story import SPEC, SPOT, Story, story

HALF = SPEC.slice_s / 2


def renew(run: Story, at: float) -> list[d.Decision]:
    return run.tell(e.TimerFired(at=at, name=f"{RENEW}l0"))


def test_a_granted_machine_is_looked_at_when_half_its_time_is_over() -> None:
    run = story(Renewal())
    run.order(d.RequestLease(lease="l0", offer=SPOT, end_by=SPEC.slice_s, why="the story"))
    assert run.tell(e.LeaseGranted(at=30.0, lease="l0")) == [
        d.WakeAt(name=f"{RENEW}l0", at=HALF, about="l0", why="prepaid time is half over then")
    ]


def test_the_next_slice_is_prepaid_at_half_time() -> None:
    run = story(Renewal(), lease="l0", job="j0", running_since=0.0)
    extended, wake = renew(run, HALF)
    assert extended == d.ExtendLease(
        lease="l0", end_by=HALF + SPEC.slice_s, reserve_usd=ANY, why="1 running: prepay the next slice"
    )
    assert extended.reserve_usd == pytest.approx(HALF / 3600 * 0.3 + SPEC.slice_s / 3600 * 1.0)  # paid, and the worst
    assert wake.at == HALF + SPEC.slice_s / 2


def test_an_extension_that_money_cuts_short_is_followed_by_a_last_call() -> None:
    run = story(Renewal(), spec=replace(SPEC, budget_usd=0.26), lease="l0", job="j0", running_since=0.0)
    extended, wake = renew(run, HALF)
    assert SPEC.slice_s < extended.end_by < HALF + SPEC.slice_s
    assert extended.reserve_usd <= 0.26
    assert wake.name == f"{LAST_CALL}l0"
    assert wake.at == extended.end_by - 2 * SPEC.wind_down_s


def test_at_the_last_call_money_that_came_free_buys_more_time_and_then_the_work_is_saved() -> None:
    """Reserved at $1.00 an hour, charged at $0.30: each last call finds less than the one before, then none."""
    run = story(Renewal(), spec=replace(SPEC, budget_usd=0.26), lease="l0", job="j0", running_since=0.0)
    _, wake = renew(run, HALF)
    ends = [run.state.leases["l0"].end_by]
    while wake.name == f"{LAST_CALL}l0":
        extended, wake = run.tell(e.TimerFired(at=wake.at, name=wake.name))
        assert isinstance(extended, d.ExtendLease)
        assert extended.reserve_usd <= 0.26
        ends.append(extended.end_by)
    assert len(ends) > 2
    gains = [later - earlier for earlier, later in pairwise(ends)]
    assert gains == sorted(gains, reverse=True)
    assert (wake.name, wake.at) == (f"{LEAVE}l0", ends[-1] - SPEC.wind_down_s)
    halt = d.HaltSegment(
        segment="s0", grace_s=SPEC.wind_down_s, why="the prepaid time of its machine ends, and the budget pays no more"
    )
    assert run.tell(e.TimerFired(at=wake.at, name=wake.name)) == [halt]
    assert run.tell(e.TimerFired(at=wake.at, name=wake.name)) == []


def test_a_refused_extension_is_followed_by_a_last_call_in_time() -> None:
    run = story(Renewal(), spec=replace(SPEC, deadline_s=SPEC.slice_s), lease="l0", job="j0", running_since=0.0)
    refused, wake = renew(run, HALF)
    assert isinstance(refused, d.Refused)
    assert wake.at == SPEC.slice_s - 2 * SPEC.wind_down_s


def test_a_trial_that_starts_after_the_last_call_still_saves_in_time() -> None:
    run = story(Renewal(), spec=replace(SPEC, deadline_s=SPEC.slice_s), lease="l0", job="j0")
    _, last_call = renew(run, HALF)
    (leave,) = run.tell(e.TimerFired(at=last_call.at, name=last_call.name))
    assert (leave.name, leave.at) == (f"{LEAVE}l0", SPEC.slice_s - SPEC.wind_down_s)
    run.start("s0", "j0", "l0")
    assert [type(x) for x in run.tell(e.TimerFired(at=leave.at, name=leave.name))] == [d.HaltSegment]


def test_where_saving_takes_most_of_a_slice_it_is_renewed_before_workers_leave() -> None:
    spec = replace(SPEC, slice_s=900.0, wind_down_s=700.0)
    run = story(Renewal(), spec=spec)
    run.order(d.RequestLease(lease="l0", offer=SPOT, end_by=900.0, why="the story"))
    (wake,) = run.tell(e.LeaseGranted(at=30.0, lease="l0"))
    assert 30.0 < wake.at == 100.0 < 900.0 - spec.wind_down_s


def test_a_machine_that_came_up_late_is_prepaid_for_another_slice_with_its_first_trial() -> None:
    """As on a busy cluster: it was queued for almost all of its first slice."""
    run = story(Cheapest(), Renewal())
    run.add("j0", until_step=9)
    run.order(d.RequestLease(lease="l0", offer=SPOT, end_by=SPEC.slice_s, why="the story"))
    start, extend, wake = run.tell(e.LeaseGranted(at=SPEC.slice_s - 20.0, lease="l0"))
    assert isinstance(start, d.StartSegment)
    assert (type(extend), extend.end_by) == (d.ExtendLease, 2 * SPEC.slice_s - 20.0)
    assert wake.name == f"{RENEW}l0"


@pytest.mark.parametrize("ending", ["notice", "released", "winding down", "gone"])
def test_a_machine_that_is_leaving_is_not_renewed(ending: str) -> None:
    run = story(Renewal(), lease="l0", job="j0", running_since=0.0)
    match ending:
        case "notice":
            run.happened(e.RevocationNoticed(at=9.0, lease="l0", gone_at=129.0))
        case "released":
            run.order(d.ReleaseLease(lease="l0", why="the story"))
        case "winding down":
            run.order(d.WindDown(reason="completed", why="the story"))
        case "gone":
            run.happened(e.LeaseEnded(at=9.0, lease="l0", cause="revoked", charged_usd=0.0))
    assert renew(run, HALF) == []


def test_a_machine_whose_prepaid_time_ended_without_a_controller_is_not_paid_again() -> None:
    run = story(Renewal(), lease="l0", job="j0", running_since=0.0)
    refused, last_call = renew(run, SPEC.slice_s + 5.0)
    assert (type(refused), refused.why) == (d.Refused, "the prepaid time of l0 is over")
    assert last_call.at == SPEC.slice_s + 5.0
    assert run.state.leases["l0"].end_by == SPEC.slice_s
