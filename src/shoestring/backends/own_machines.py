"""OwnMachines: the machines of an `OwnMarket`. What their source observes is reported as it is; added are their prices,
which are read while the run lasts, and a denial at once where all nodes of a type are leased already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import MachineSource, Sighting
from shoestring.backends.price_watch import PriceWatch
from shoestring.kernel.types import LeaseId, Offer
from shoestring.market.own import OwnMarket
from shoestring.world.live.clock import RunClock


class OwnMachines:
    def __init__(self, machines: MachineSource, market: OwnMarket, prices: PriceWatch, clock: RunClock) -> None:
        self._machines = machines
        self._prices = prices
        self._clock = clock
        self._types = {node.offer: node for node in market.nodes}
        self._leased: dict[LeaseId, Offer] = {}
        self._denied: dict[LeaseId, Sighting] = {}

    def recall(self, record: LeaseRecord) -> None:
        if record.open:
            self._leased[record.request.lease] = record.request.offer
        self._machines.recall(record)

    def request(self, record: LeaseRecord, *, again: bool) -> None:
        lease, offer = record.request.lease, record.request.offer
        others = Counter(held for other, held in self._leased.items() if other != lease)
        count = self._types[offer].count
        if count is not None and others[offer] >= count:
            self._denied[lease] = Sighting(answered_at=self._clock.now(), denied="no_capacity")
            return
        self._leased[lease] = offer
        self._machines.request(record, again=again)

    def update(self, open_leases: Collection[LeaseId]) -> None:
        self._prices.update()
        self._machines.update(open_leases)

    def look(self, record: LeaseRecord) -> Sighting:
        denied = self._denied.get(record.request.lease)
        if denied is not None:
            return denied
        seen, notice_s = self._machines.look(record), self._types[record.request.offer].notice_s
        if seen.notice is None or notice_s is None:
            return seen
        return seen._replace(notice=seen.notice._replace(gone_at=seen.notice.at + notice_s))

    def keep_until(self, lease: LeaseId, at: float) -> None:
        self._machines.keep_until(lease, at)

    def release(self, lease: LeaseId) -> None:
        self._leased.pop(lease, None)
        if self._denied.pop(lease, None) is None:
            self._machines.release(lease)

    def close(self, *, leased: bool) -> None:
        self._prices.close()
        self._machines.close(leased=leased)
