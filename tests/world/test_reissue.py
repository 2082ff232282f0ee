"""What a journal leaves pending: leases that are open, with the time they were granted and the end they have now."""

from __future__ import annotations

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.testing.story import SPOT
from shoestring.world.live.reissue import PendingOrders


def requested(lease: str) -> d.RequestLease:
    return d.RequestLease(lease=lease, offer=SPOT, end_by=900.0, reserve_usd=0.25, why="a test")


def pending(*events: e.Event, asked: tuple[str, ...] = ("l0", "l1")) -> PendingOrders:
    first = Entry(seq=0, event=e.TimerFired(at=0.0, name="x"), decisions=tuple(map(requested, asked)))
    later = (Entry(seq=seq, event=event, decisions=()) for seq, event in enumerate(events, 1))
    return PendingOrders([first, *later])


def test_a_lease_was_granted_when_its_event_says_and_only_while_it_is_open() -> None:
    found = pending(e.LeaseGranted(at=40.0, lease="l0"), e.LeaseGranted(at=70.0, lease="l1"))
    assert found.granted_at == {"l0": 40.0, "l1": 70.0}
    over = pending(
        e.LeaseGranted(at=40.0, lease="l0"), e.LeaseEnded(at=90.0, lease="l0", cause="revoked", charged_usd=0.1)
    )
    assert over.granted_at == {}
    assert list(over.leases) == ["l1"]


def test_a_lease_that_nothing_was_ordered_of_is_not_held() -> None:
    assert pending(e.LeaseGranted(at=40.0, lease="l9")).granted_at == {}
