"""Machines in the state: grants, notices, LeaseEnded, accounts, timers, phases."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.errors import IllegalDecision
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Offer
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, story

WIDE = replace(SPEC, listings=tuple(replace(listing, slots=4) for listing in SPEC.listings))


def request(lease: str, *, offer: Offer = SPOT) -> d.RequestLease:
    return d.RequestLease(lease=lease, offer=offer, end_by=900.0, why="the story")


def test_a_machine_can_be_used_once_it_is_granted() -> None:
    run = story()
    run.order(request("l0"))
    assert list(run.view.pending) == ["l0"]
    assert not run.view.with_free_slots
    run.happened(e.LeaseGranted(at=30.0, lease="l0"))
    assert not run.view.pending
    assert list(run.view.with_free_slots) == list(run.view.idle) == ["l0"]


def test_slots_are_used_and_freed() -> None:
    run = story(spec=WIDE, lease="l0")
    run.add("j0", until_step=9, slots=3)
    run.add("j1", until_step=9, slots=1)
    run.start("s0", "j0", "l0")
    assert (run.state.leases["l0"].free_slots, list(run.view.with_free_slots), list(run.view.idle)) == (1, ["l0"], [])
    run.start("s1", "j1", "l0")
    assert not run.view.with_free_slots
    assert [segment.id for segment in run.view.segments_on("l0")] == ["s0", "s1"]
    run.end("j0", "halted", step=0)
    run.end("j1", "halted", step=0)
    lease = run.state.leases["l0"]
    assert (lease.free_slots, lease.idle_since, list(run.view.idle)) == (4, run.state.now, ["l0"])


def test_a_machine_on_notice_gets_no_more_work_and_may_be_replaced() -> None:
    run = story(lease="l0")
    run.happened(e.RevocationNoticed(at=10.0, lease="l0", gone_at=130.0))
    assert not run.view.with_free_slots
    assert run.view.in_hand == 0
    assert not run.state.leases["l0"].usable


def test_a_denied_machine_is_forgotten_but_the_offer_is_remembered() -> None:
    run = story()
    run.order(request("l0"))
    run.happened(e.LeaseDenied(at=10.0, lease="l0", reason="no_capacity"))
    assert not run.state.leases
    assert not run.view.pending
    assert (run.state.denials, run.view.denied_at) == (1, {SPOT: 10.0})
    assert run.view.reserved_usd == 0.0


def test_a_bill_closes_the_account_of_a_machine() -> None:
    run = story(lease="l0")
    assert run.view.reserved_usd == pytest.approx(0.25)
    run.happened(e.LeaseEnded(at=1800.0, lease="l0", cause="revoked", charged_usd=0.15, refunded_usd=0.02))
    account = run.view.accounts[SPOT]
    assert (account.leases, account.seconds, account.revoked) == (1, 1800.0, 1)
    assert (account.charged_usd, account.refunded_usd, account.on_demand_usd) == (0.15, 0.02, 0.5)
    assert (run.view.spent_usd, run.view.reserved_usd, run.state.revocations) == (0.15, 0.0, 1)


@pytest.mark.parametrize(("cause", "counts"), [("revoked", 1), ("lost", 1), ("released", 0), ("expired", 0)])
def test_only_preempted_and_lost_machines_count_as_revocations(cause, counts: int) -> None:
    run = story(lease="l0", job="j0", running_since=0.0)
    run.happened(e.LeaseEnded(at=60.0, lease="l0", cause=cause, charged_usd=0.0))
    assert (run.state.revocations, run.state.jobs["j0"].revocations) == (counts, counts)


def test_timers_are_set_moved_fired_and_void_with_their_machine() -> None:
    run = story(lease="l0")
    run.order(d.WakeAt(name="a", at=50.0, why="x"), d.WakeAt(name="b", at=60.0, about="l0", why="x"))
    run.order(d.WakeAt(name="a", at=70.0, why="x"))
    assert run.view.timers == {"a": 70.0, "b": 60.0}
    run.happened(e.TimerFired(at=50.0, name="a"))  # already sent when the timer was moved
    assert "a" in run.view.timers
    run.happened(e.TimerFired(at=70.0, name="a"))
    assert "a" not in run.view.timers
    run.happened(e.LeaseEnded(at=80.0, lease="l0", cause="released", charged_usd=0.0))
    assert run.view.timers == {}


def test_a_background_task_runs_once_per_name() -> None:
    run = story()
    thought = d.Think(name="fit", question="m:f", given=None, why="x")
    run.order(thought)
    assert list(run.view.background_tasks) == ["fit"]
    with pytest.raises(IllegalDecision):
        run.order(thought)
    run.happened(e.ThoughtReady(at=1.0, name="fit", answer=1))
    assert not run.view.background_tasks


def test_a_refusal_is_on_record() -> None:
    run = story()
    run.order(d.RequestLease(lease="l0", offer=SPOT, end_by=10.0, why="too short"))
    assert run.view.refusals == 1
    assert run.view.refused.wish.why == "too short"
    assert not run.state.leases


@pytest.mark.parametrize(
    ("requests", "phase"),
    [
        (["pause"], "pausing"),
        (["pause", "resume"], "running"),
        (["stop"], "winding_down"),
        (["stop", "resume"], "winding_down"),
        (["resume"], "running"),
    ],
)
def test_user_requests_change_the_phase(requests, phase: str) -> None:
    run = story()
    for at, kind in enumerate(requests):
        run.happened(e.UserAsked(at=float(at), wish=kind))
    assert run.view.phase == phase


def test_more_money_and_time_can_be_given() -> None:
    run = story()
    run.happened(e.UserAsked(at=1.0, wish="amend", budget_usd=200.0))
    run.happened(e.UserAsked(at=2.0, wish="amend", deadline_s=7200.0))
    assert (run.view.spec.budget_usd, run.view.deadline_at) == (200.0, 7200.0)


def test_a_broken_policy_parks_the_run_unless_it_is_ending_anyway() -> None:
    run = story()
    run.happened(e.PolicyBroke(at=1.0, detail="division by zero"))
    assert (run.view.phase, run.view.ending) == ("parking", "division by zero")
    run = story()
    run.order(d.WindDown(reason="completed", why="done"))
    run.happened(e.PolicyBroke(at=1.0, detail="division by zero"))
    assert run.view.phase == "winding_down"


def test_a_run_concludes_only_with_empty_hands() -> None:
    run = story(lease="l0")
    with pytest.raises(IllegalDecision, match="l0"):
        run.order(d.Conclude(best=None, why="done"))
    run = story()
    run.order(d.Conclude(best=None, why="done"))
    assert run.state.concluded


NONSENSE = {
    "out of turn": request("l7"),
    "not in the listings": request("l1", offer=replace(ON_DEMAND_OFFER, machine="huge")),
    "for less than nothing": replace(request("l1"), max_usd_per_hour=-1.0),
    "an unknown lease": d.ReleaseLease(lease="l9", why="x"),
    "no such lease to extend": d.ExtendLease(lease="l9", end_by=9.0, why="x"),
    "a timer about no lease": d.WakeAt(name="t", at=1.0, about="l9", why="x"),
    "on a full machine": d.StartSegment(
        segment="s0", job="j0", leases=("l0",), config={}, until_step=9, slots=2, why="x"
    ),
    "on no machine": d.StartSegment(segment="s0", job="j0", leases=("l9",), config={}, until_step=9, why="x"),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_illegal(what: str) -> None:
    with pytest.raises(IllegalDecision):
        story(lease="l0", job="j0").order(NONSENSE[what])


def test_a_lease_is_never_shortened() -> None:
    run = story(lease="l0", guard=lambda _state, proposed: proposed)
    with pytest.raises(IllegalDecision, match="shorten"):
        run.order(d.ExtendLease(lease="l0", end_by=10.0, why="x"))
