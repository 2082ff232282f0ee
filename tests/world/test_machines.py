"""Simulated machines: granted, denied, on notice, revoked, released, expired, and the bill of each."""

import pytest

from shoestring.errors import ShoestringError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.market.simulated.availability import Availability
from tests.world.scenes import (
    GRANTED_AT,
    HOUR_S,
    NOTICE_S,
    ON_DEMAND_OFFER,
    RUNNING_AT,
    SPOT,
    SPOT_USD_PER_HOUR,
    Scene,
    dies_at_age,
    ended,
    gone,
    listing,
    market,
    reported,
    started,
    without_bill,
)


def test_a_machine_is_granted_after_the_provisioning_time():
    scene = Scene(market(provision_s=90.0))
    scene.rent()
    assert scene.next() == e.LeaseGranted(at=90.0, lease="l0")


@pytest.mark.parametrize(
    ("cloud", "wanted", "reason"),
    [
        (market(prices=((0.0,), (1.5,))), {}, "price"),
        (market(), {"maximum": 0.30}, "price"),
        (market(stock=Availability({SPOT: [(500.0, 900.0, 1)]})), {}, "no_capacity"),
        (market(denial_share=1.0), {}, "no_capacity"),
        (market(), {"end_by": GRANTED_AT}, "too_late"),
    ],
)
def test_a_denial_comes_after_a_delay_with_its_reason(cloud, wanted, reason):
    scene = Scene(cloud)
    scene.rent(**wanted)
    assert scene.next() == e.LeaseDenied(at=5.0, lease="l0", reason=reason)


def test_nothing_else_ever_follows_a_denial():
    scene = Scene(market(dies_at_age(100.0), denial_share=1.0))
    scene.rent()
    scene.next()
    scene.release()
    with pytest.raises(ShoestringError, match="no events left, and the run is not over"):
        scene.next()


def test_a_denial_does_not_come_after_the_machine_was_to_end():
    scene = Scene(market(denial_share=1.0, denial_s=30.0))
    scene.rent(end_by=20.0)
    assert scene.next() == e.LeaseDenied(at=20.0, lease="l0", reason="no_capacity")


def test_a_notice_comes_first_and_then_the_machine_is_gone():
    scene = Scene(market(dies_at_age(1000.0)))
    scene.rent()
    assert [scene.next() for _ in range(3)] == [
        e.LeaseGranted(at=40.0, lease="l0"),
        e.RevocationNoticed(at=1040.0 - NOTICE_S, lease="l0", gone_at=1040.0),
        gone(1040.0, "revoked", usd=pytest.approx(1000 * SPOT_USD_PER_HOUR / HOUR_S)),
    ]


def test_a_provider_without_notice_revokes_without_an_event_before():
    scene = Scene(market(dies_at_age(1000.0), listings=[listing(SPOT, notice_s=0.0)]))
    scene.rent()
    scene.next()
    assert without_bill(scene.next()) == gone(1040.0, "revoked")


def test_a_machine_interrupted_in_its_first_hour_is_refunded():
    scene = Scene(market(dies_at_age(1800.0), listings=[listing(SPOT, billing="aws_spot")]))
    scene.rent()
    assert scene.first(e.LeaseEnded) == gone(1840.0, "revoked", usd=0.0, refunded=pytest.approx(SPOT_USD_PER_HOUR / 2))


def test_an_on_demand_machine_is_never_preempted():
    scene = Scene(market(dies_at_age(1000.0)))
    scene.rent(offer=ON_DEMAND_OFFER, end_by=7240.0)
    scene.next()
    assert scene.next() == gone(7240.0, "expired", usd=pytest.approx(2.0))


def test_a_machine_is_billed_until_it_has_ended():
    scene = Scene()
    scene.rent(offer=ON_DEMAND_OFFER)
    scene.next()
    scene.release()
    # Two seconds later; a minute is charged at least.
    assert scene.next() == gone(42.0, "released", usd=pytest.approx(1.0 / 60))


def test_a_machine_released_before_its_grant_is_free_of_charge():
    scene = Scene()
    scene.rent()
    scene.release()
    assert scene.next() == gone(2.0, "released", usd=0.0)
    with pytest.raises(ShoestringError, match="no events left"):
        scene.next()


def test_releasing_twice_ends_it_once():
    scene = Scene()
    scene.rent()
    scene.next()
    scene.release()
    scene.release()
    scene.next()
    with pytest.raises(ShoestringError, match="no events left"):
        scene.next()


def test_prepaid_time_ends_the_machine_even_while_it_is_being_released():
    scene = Scene()
    scene.rent(end_by=41.0)
    scene.next()
    scene.release()
    assert without_bill(scene.next()).at == 41.0


def test_a_machine_that_is_not_extended_ends_with_the_segments_on_it():
    scene = Scene(seconds_per_step=lambda *_: 100.0)
    scene.train(end_by=145.0)
    assert scene.until(e.LeaseEnded) == [
        started(RUNNING_AT),
        ended(145.0, 0, "lost"),
        gone(145.0, "expired", usd=pytest.approx(105 * SPOT_USD_PER_HOUR / HOUR_S)),
    ]


def test_an_extension_moves_the_end():
    scene = Scene()
    scene.rent(end_by=100.0)
    scene.next()
    scene.order(d.ExtendLease(lease="l0", end_by=250.0, why="a test"))
    scene.order(d.ExtendLease(lease="l0", end_by=400.0, why="a test"))
    assert without_bill(scene.next()) == gone(400.0, "expired")


def test_an_extension_of_an_ended_lease_changes_nothing():
    scene = Scene()
    scene.rent(end_by=100.0)
    scene.first(e.LeaseEnded)
    scene.order(d.ExtendLease(lease="l0", end_by=250.0, why="a test"))
    with pytest.raises(ShoestringError, match="no events left"):
        scene.next()


def test_a_segment_started_on_an_ended_lease_is_lost_at_once():
    scene = Scene()
    scene.rent(end_by=100.0)
    scene.first(e.LeaseEnded)
    scene.start()
    assert scene.next() == ended(100.0, 0, "lost")


def test_a_machine_with_several_slots_runs_several_segments_at_once():
    scene = Scene(market(listings=[listing(SPOT, slots=2)]))
    scene.rent()
    scene.next()
    scene.start("s0", job="j0", until_step=2)
    scene.start("s1", job="j1", until_step=2)
    events = [(x.at, x.segment) for x in scene.until(e.SegmentEnded)]
    assert events[:6] == [(60.0, "s0"), (60.0, "s1"), (70.0, "s0"), (70.0, "s1"), (80.0, "s0"), (80.0, "s1")]


def test_all_segments_of_a_machine_end_before_its_bill():
    scene = Scene(market(dies_at_age(33.0), listings=[listing(SPOT, slots=2, notice_s=0.0)]))
    scene.rent()
    scene.next()
    scene.start("s0", job="j0")
    scene.start("s1", job="j1")
    *_, first, second, bill = scene.until(e.LeaseEnded)
    assert [first, second] == [
        e.SegmentEnded(at=73.0, segment="s0", step=1, cause="lost"),
        e.SegmentEnded(at=73.0, segment="s1", step=1, cause="lost"),
    ]
    assert without_bill(bill) == gone(73.0, "revoked")


def test_a_segment_on_two_machines_ends_with_either_and_frees_the_other():
    scene = Scene()
    scene.rent("l0", end_by=10 * HOUR_S)
    scene.rent("l1", end_by=75.0)
    scene.next()
    scene.next()
    scene.start(leases=("l0", "l1"), until_step=9)
    assert scene.until(e.SegmentEnded) == [started(RUNNING_AT), reported(70.0, 1), ended(75.0, 1, "lost")]
    assert without_bill(scene.next()) == gone(75.0, "expired", lease="l1")
    scene.start("s1", leases=("l0",), until_step=1)
    assert scene.next() == e.SegmentStarted(at=95.0, segment="s1")
