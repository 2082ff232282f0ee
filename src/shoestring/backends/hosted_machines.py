"""HostedMachines: machines on which our host is started, rented from a provider: Slurm today.

A lease is granted when its host signs in, through the post. How its machine ended is reported by the host, if it can,
else by the provider; a host that is silent for too long is given up.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from shoestring.backends.folder_post import FolderPost
from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import MachineEnd, Notice, Sighting
from shoestring.errors import BackendError, PermanentError, TransientError
from shoestring.host.messages import HostSignature
from shoestring.kernel.types import LeaseId
from shoestring.world.live.clock import RunClock

_UPDATE_EVERY_S = 0.1
_MAX_FAILED_STARTS = 3


class OverLimit(BackendError):
    """The provider gives this user no more machines for now."""


class HostProvider(Protocol):
    """Rents machines that run `python -m shoestring.host FOLDER` in the folder of their lease."""

    notice_s: float
    """Real seconds between the provider's warning and the end of the machine."""

    def rent(self, record: LeaseRecord, *, again: bool) -> None:
        """Rent a machine for this lease, once, also if called again. `again`: a controller that was killed before
        recording it may have rented one.

        TransientError if the provider may not have received it, OverLimit, or PermanentError if it refuses.
        """
        ...

    def update(self, open_leases: Collection[LeaseId]) -> bool:
        """Query the machines now and then, adopt those of open leases and end the others. True after a new answer."""
        ...

    def charged_from(self, lease: LeaseId, signed_wall: float) -> float | None:
        """Wall time from which on its machine, whose host signed in at `signed_wall`, costs money; None while that is
        not known: the lease is granted when it is."""
        ...

    def ended(self, lease: LeaseId) -> MachineEnd | None:
        """What the provider says of an end that this run did not order."""
        ...

    def end(self, lease: LeaseId) -> None: ...

    def close(self, *, leased: bool) -> None: ...


@runtime_checkable
class GangProvider(Protocol):
    """Rents several machines as one allocation, within which a program can start processes on all of them."""

    def rent_together(self, records: Sequence[LeaseRecord], *, again: bool) -> None: ...


class HostedMachines:
    def __init__(self, provider: HostProvider, post: FolderPost, clock: RunClock) -> None:
        self._provider = provider
        self._post = post
        self._clock = clock
        self._requested: dict[LeaseId, LeaseRecord] = {}
        """Without a host so far."""
        self._gathered: dict[LeaseId, list[tuple[LeaseRecord, bool]]] = {}
        """Gang -> its leases requested so far, until all orders of the turn have been carried out."""
        self._over_limit: dict[LeaseId, float] = {}
        """When the provider refused a machine for this lease."""
        self._seen: dict[LeaseId, Sighting] = {}
        self._refused: PermanentError | None = None
        """Why no machine can be rented, once a host failed in a way in which the next one would fail too."""
        self._failed_starts = 0
        """Consecutive machines that ended before their hosts signed in."""
        self._updated_at = 0.0

    def recall(self, record: LeaseRecord) -> None:
        if not record.open:  # its controller may have died after recording the end
            self.release(record.request.lease)
        elif record.pending:
            self._requested[record.request.lease] = record

    # -- orders --------------------------------------------------------------------------------------------------------
    def request(self, record: LeaseRecord, *, again: bool) -> None:
        if self._refused is not None:
            refused, self._refused = self._refused, None  # raised once: the run pauses until a person resumes it
            raise refused
        self._requested[record.request.lease] = record
        gang = record.request.gang
        if gang is not msgspec.UNSET and isinstance(self._provider, GangProvider):
            self.keep_until(record.request.lease, record.end_by)
            self._gathered.setdefault(gang, []).append((record, again))
        else:
            self._rent(record, again=again)

    def _rent_gathered(self) -> None:
        """All machines of a gang at once. What the provider may not have received is requested again."""
        provider, gathered, self._gathered = self._provider, self._gathered, {}
        for members in gathered.values():
            records = [record for record, _ in members if record.request.lease in self._requested]
            if not records or not isinstance(provider, GangProvider):
                continue
            try:
                provider.rent_together(records, again=any(again for _, again in members))
            except TransientError:
                self._gathered[records[0].request.lease] = [(record, True) for record in records]
            except (OverLimit, PermanentError) as error:
                self._refused = error if isinstance(error, PermanentError) else self._refused
                for record in records:
                    self._over_limit[record.request.lease] = self._clock.now()

    def _rent(self, record: LeaseRecord, *, again: bool = False) -> None:
        """Once for each lease, and again only while the provider may not have received it."""
        try:
            self.keep_until(record.request.lease, record.end_by)
            self._provider.rent(record, again=again)
        except TransientError:
            pass
        except OverLimit:
            self._over_limit[record.request.lease] = self._clock.now()
            self._see(record.request.lease)

    def _rent_again(self, record: LeaseRecord) -> None:
        """Now that the provider answers. If it refuses, the next request raises the error."""
        try:
            self._rent(record)
        except PermanentError as error:
            self._refused = error

    def keep_until(self, lease: LeaseId, at: float) -> None:
        self._post.keep_until(lease, self._clock.wall(at))

    def release(self, lease: LeaseId) -> None:
        for of_lease in (self._requested, self._over_limit, self._seen):
            of_lease.pop(lease, None)
        self._post.dismiss(lease)
        self._provider.end(lease)

    # -- what is seen --------------------------------------------------------------------------------------------------
    def update(self, open_leases: Collection[LeaseId]) -> None:
        """Not at every poll: each lease costs some file reads on a shared file system."""
        if time.monotonic() - self._updated_at < _UPDATE_EVERY_S:
            return
        self._updated_at = time.monotonic()
        self._rent_gathered()
        answered = self._provider.update(open_leases)
        for lease in open_leases:
            self._see(lease)
        for record in list(self._requested.values()) if answered else ():
            if self.look(record) == Sighting() and record.request.gang is msgspec.UNSET:
                self._rent_again(record)

    def look(self, record: LeaseRecord) -> Sighting:
        return self._seen.get(record.request.lease, Sighting())

    def _see(self, lease: LeaseId) -> None:
        if lease in self._over_limit:
            self._seen[lease] = Sighting(answered_at=self._over_limit[lease], denied="quota")
            return
        signed, ended = self._post.signed(lease), self._ended(lease)
        if signed is not None:
            self._failed_starts = 0
            self._requested.pop(lease, None)
        elif ended is not None and ended.cause == "lost" and lease in self._requested:
            self._note_failed_start(ended)
            del self._requested[lease]
        granted_at, billed_from = (None, None) if signed is None else self._granted(lease, signed)
        self._seen[lease] = Sighting(
            answered_at=granted_at,
            billed_from=billed_from,
            notice=self._notice(lease),
            ended=ended,
        )

    def _granted(self, lease: LeaseId, signed: HostSignature) -> tuple[float | None, float | None]:
        """When the lease was granted, and since when it costs money if that was before."""
        charged_from = self._provider.charged_from(lease, signed.wall)
        if charged_from is None:
            return None, None
        granted_at = min(self._clock.now(), self._clock.at(signed.wall))
        return granted_at, self._clock.at(charged_from) if charged_from < signed.wall else None

    def _ended(self, lease: LeaseId) -> MachineEnd | None:
        left = self._post.left(lease)
        if left is not None:
            return MachineEnd(left.cause, left.why)
        if ended := self._provider.ended(lease):
            return ended
        silent = self._post.is_silent(lease)
        return MachineEnd("revoked", silent) if silent else None

    def _notice(self, lease: LeaseId) -> Notice | None:
        """Workers get the notice from their host; this reports it to the policies."""
        notice = self._post.notice(lease)
        if notice is None:
            return None
        return Notice(self._clock.at(notice.wall), self._clock.at(notice.wall + self._provider.notice_s))

    def _note_failed_start(self, ended: MachineEnd) -> None:
        """A host that wrote to its log says what is wrong. Without a log, one or two failures may be chance."""
        self._failed_starts += 1
        if ended.log_line or self._failed_starts >= _MAX_FAILED_STARTS:
            self._refused = PermanentError(
                f"a job of this run does not start on its node: {ended.why}",
                hint="are the run's folder and this Python the same on all nodes?",
            )

    def close(self, *, leased: bool) -> None:
        self._provider.close(leased=leased)
