"""DrawnMachines: machines that are granted and preempted as a simulated market draws it.

The machines themselves come from another source: this computer, Ray nodes, Slurm jobs. What the market denies is never
requested of it, and what it preempts ends although the machine is there. What was drawn is stored before anything
follows from it (`leases/<id>/drawn.json`): a restarted controller finds the same.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from shoestring.backends.lease_record import NEVER, LeaseRecord
from shoestring.backends.machines import MachineSource, Notice, Sighting
from shoestring.errors import DamagedFile
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import Denial, LeaseId, Offer
from shoestring.worker.task import read_json, write_json
from shoestring.world.live.clock import RunClock

_DRAWN = "drawn.json"


class DrawnGrant(Protocol):
    @property
    def at(self) -> float: ...


@runtime_checkable
class DrawingMarket(Protocol):
    """What is drawn of a market (`market.simulated.SimulatedProvider`)."""

    @property
    def denial_s(self) -> float: ...

    def grant(self, request: RequestLease, now: float) -> DrawnGrant | Denial: ...

    def revocation(
        self, lease: LeaseId, offer: Offer, granted_at: float, max_usd_per_hour: float | None
    ) -> tuple[float, float] | None: ...


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """What the market has drawn for one lease; stored."""

    denied: Denial | None = None
    answered_at: float
    notice_at: float = NEVER
    gone_at: float = NEVER


class DrawnMachines:
    def __init__(
        self,
        machines: MachineSource,
        market: DrawingMarket,
        clock: RunClock,
        folder: Path | None = None,
        *,
        grants: bool = True,
    ) -> None:
        """`folder`: of the run's leases, if they outlive this process. `grants`: the market also draws when a machine
        comes up; otherwise it is granted when its source says so."""
        self._machines = machines
        self._market = market
        self._clock = clock
        self._folder = folder
        self._grants = grants
        self._drawn: dict[LeaseId, Drawn] = {}

    def recall(self, record: LeaseRecord) -> None:
        lease = record.request.lease
        self._machines.recall(record)
        if not record.open:
            return
        try:
            if self._folder is not None:
                self._drawn[lease] = read_json(self._folder / lease / _DRAWN, Drawn)
        except DamagedFile:
            if record.answered_at != NEVER:  # drawn again, the market gives the same answer
                self._store(lease, self._draw_revocation(record.request, record.answered_at))
        except FileNotFoundError:  # releases up to 0.1 kept it in the record itself
            if record.answered_at != NEVER:
                self._drawn[lease] = Drawn(
                    answered_at=record.answered_at, notice_at=record.notice_at, gone_at=record.gone_at
                )

    def request(self, record: LeaseRecord, *, again: bool) -> None:
        lease = record.request.lease
        if lease not in self._drawn:
            self._store(lease, self._draw(record))
        if self._drawn[lease].denied is None:
            self._machines.request(record, again=again)

    def _draw(self, record: LeaseRecord) -> Drawn:
        request, now = record.request, self._clock.now()
        answer = self._market.grant(request, now)
        if isinstance(answer, str):
            return Drawn(denied=answer, answered_at=min(now + self._market.denial_s, request.end_by))
        return self._draw_revocation(request, answer.at) if self._grants else Drawn(answered_at=NEVER)

    def _draw_revocation(self, request: RequestLease, granted_at: float) -> Drawn:
        drawn = self._market.revocation(request.lease, request.offer, granted_at, request.max_usd_per_hour)
        notice_at, gone_at = drawn or (NEVER, NEVER)
        return Drawn(answered_at=granted_at, notice_at=notice_at, gone_at=gone_at)

    def _store(self, lease: LeaseId, drawn: Drawn) -> None:
        if self._folder is not None:
            write_json(self._folder / lease / _DRAWN, drawn)
        self._drawn[lease] = drawn

    def update(self, open_leases: Collection[LeaseId]) -> None:
        self._machines.update(open_leases)

    def look(self, record: LeaseRecord) -> Sighting:
        lease = record.request.lease
        drawn = self._drawn.get(lease)
        if drawn is not None and drawn.denied is not None:
            return Sighting(answered_at=drawn.answered_at, denied=drawn.denied)
        seen = self._machines.look(record)
        if drawn is None or seen.answered_at is None or seen.denied is not None:
            return seen
        if drawn.answered_at == NEVER:
            drawn = self._draw_revocation(record.request, seen.answered_at)
            self._store(lease, drawn)
        notices = [Notice(drawn.notice_at, drawn.gone_at)] if drawn.gone_at != NEVER else []
        notices += [] if seen.notice is None else [seen.notice]
        first = min(notices, key=lambda notice: notice.gone_at, default=None)
        return seen._replace(answered_at=drawn.answered_at, notice=first)

    def keep_until(self, lease: LeaseId, at: float) -> None:
        self._machines.keep_until(lease, at)

    def release(self, lease: LeaseId) -> None:
        self._machines.release(lease)
        self._drawn.pop(lease, None)

    def close(self, *, leased: bool) -> None:
        self._machines.close(leased=leased)
