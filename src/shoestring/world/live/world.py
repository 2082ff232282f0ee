"""LiveWorld: timers, one backend, background tasks and user requests, turned into events as they happen."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from shoestring.errors import ShoestringError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import RecordedEvents
from shoestring.kernel.policy import PriceFeed
from shoestring.kernel.types import LeaseId
from shoestring.storage.checkpoints.directory import CheckpointStore
from shoestring.world.live.background import BackgroundTasks, SubprocessTasks
from shoestring.world.live.clock import RunClock
from shoestring.world.live.reissue import PendingOrders
from shoestring.world.live.retries import Retries
from shoestring.world.live.user_requests import UserRequests
from shoestring.world.protocol import Backend

_SHORTEST_NAP_S = 0.005
_LONGEST_NAP_S = 0.05


@runtime_checkable
class Forgetful(Protocol):
    """A backend whose machines end with this process, and which therefore gets its earlier leases on a restart."""

    def recall(self, request: d.RequestLease, granted_at: float) -> None: ...


@runtime_checkable
class Mendable(Protocol):
    """A backend with records of its own, which may be damaged, and which is therefore given its open leases on a
    restart."""

    def mend(self, request: d.RequestLease, granted_at: float, notice: e.RevocationNoticed | None) -> None: ...


class LiveWorld:
    def __init__(
        self,
        backend: Backend,
        clock: RunClock,
        feed: PriceFeed,
        store: CheckpointStore,
        *,
        run_dir: Path | None = None,
        background: BackgroundTasks | None = None,
    ) -> None:
        """`run_dir`: where other processes leave user requests."""
        self.backend = backend
        self.clock = clock
        self.feed = feed
        self.trouble: list[str] = []
        """What could not be carried out, one sentence each: the reasons for pauses that no user requested."""
        self._store = store
        self._background = SubprocessTasks() if background is None else background
        self._user_requests = UserRequests(clock, run_dir)
        self._retries = Retries(self._act, self._give_up)
        self._queue: deque[e.Event] = deque()
        self._timers: dict[str, d.WakeAt] = {}
        self._heap: list[tuple[float, str]] = []
        """Times of timers; entries of moved or cancelled ones are skipped."""
        self._unknown: set[LeaseId] = set()
        self._nap_s = _SHORTEST_NAP_S
        self._orders: dict[type, Callable[[Any], None]] = {
            d.RequestLease: backend.acquire,
            d.ExtendLease: backend.extend,
            d.ReleaseLease: lambda order: backend.release(order.lease),
            d.StartSegment: backend.start,
            d.PlanSaves: backend.plan_saves,
            d.SaveCheckpoint: lambda order: backend.signal(order.segment, "save", 0.0),
            d.HaltSegment: lambda order: backend.signal(order.segment, "halt", order.grace_s),
            d.DropCheckpoint: lambda order: store.drop(order.ref),
        }

    # -- World ---------------------------------------------------------------------------------------------------------
    def attach(self, past: RecordedEvents) -> None:
        pending = PendingOrders(past.entries)
        if isinstance(self.backend, Forgetful):
            for lease, granted_at in pending.granted_at.items():
                self.backend.recall(pending.prepaid(lease), granted_at)
        if isinstance(self.backend, Mendable):
            for lease, granted_at in pending.granted_at.items():
                self.backend.mend(pending.prepaid(lease), granted_at, pending.notices.get(lease))
        for order in pending.orders():
            self.carry_out(order)
        for lease in self.backend.inventory():
            if lease not in pending.leases:
                self._unknown.add(lease)
                self._retries.do(d.ReleaseLease(lease=lease, why="the journal does not know this lease"))

    def next_event(self) -> e.Event:
        while not self._queue:
            self._collect()
            if self._queue:
                self._nap_s = _SHORTEST_NAP_S
                break
            time.sleep(min(self._nap_s, self._until_next_timer_s()))
            self._nap_s = min(_LONGEST_NAP_S, 1.5 * self._nap_s)
        return self._queue.popleft()

    def carry_out(self, decision: d.Decision) -> None:
        kind = type(decision)
        if kind in self._orders:
            self._retries.do(decision)
        elif isinstance(decision, d.WakeAt):
            self._timers[decision.name] = decision
            heappush(self._heap, (decision.at, decision.name))
        elif isinstance(decision, d.Think):
            self._background.submit(decision)

    # -- for the rest of the program -----------------------------------------------------------------------------------
    def request(self, wish: e.Wish, *, budget_usd: float | None = None, deadline_s: float | None = None) -> None:
        """Add a user request. Safe in any thread and in a signal handler."""
        self._user_requests.add(wish, budget_usd, deadline_s)

    def close(self) -> None:
        """Close what this process holds; machines and user code keep running."""
        self._user_requests.close(self._queue)
        self._background.close()
        self.backend.close()

    # -- inside --------------------------------------------------------------------------------------------------------
    def _collect(self) -> None:
        """All events since the last call, in the order of their times."""
        self._retries.again()
        found: list[e.Event] = [*self._user_requests.ready(), *self.backend.poll()]
        for result in self._background.ready():
            now = self.clock.now()
            if result.error:
                found.append(e.PolicyBroke(at=now, detail=result.error))
            else:
                found.append(e.ThoughtReady(at=now, name=result.name, answer=result.answer))
        if self._unknown:
            found = [event for event in found if getattr(event, "lease", None) not in self._unknown]
        for event in found:
            if type(event) is e.LeaseEnded or type(event) is e.LeaseDenied:
                self._cancel_timers(event.lease)
        found.extend(self._fired())
        if len(found) > 1:
            found.sort(key=lambda event: event.at)
        self._queue.extend(found)

    def _fired(self) -> list[e.Event]:
        fired: list[e.Event] = []
        now = self.clock.now()
        while self._heap and self._heap[0][0] <= now:
            at, name = heappop(self._heap)
            timer = self._timers.get(name)
            if timer is not None and timer.at == at:
                del self._timers[name]
                fired.append(e.TimerFired(at=at, name=name))
        return fired

    def _cancel_timers(self, lease: LeaseId) -> None:
        for name in [name for name, timer in self._timers.items() if timer.about == lease]:
            del self._timers[name]

    def _until_next_timer_s(self) -> float:
        if not self._heap:
            return _LONGEST_NAP_S
        return max(0.0, self.clock.wall(self._heap[0][0]) - self.clock.wall_now())

    def _act(self, decision: d.Decision) -> None:
        self._orders[type(decision)](decision)

    def _give_up(self, decision: d.Decision, error: ShoestringError) -> None:
        """It cannot be carried out. The state must not wait for it, and a person has to look: the run pauses."""
        now = self.clock.now()
        sentence = f"{type(decision).__name__}: {error}" + (f" ({error.hint})" if error.hint else "")
        self.trouble.append(sentence)
        if isinstance(decision, d.DropCheckpoint):
            return  # it only takes some disk space
        if isinstance(decision, d.RequestLease):
            self._queue.append(e.LeaseDenied(at=now, lease=decision.lease, reason="quota"))
        elif isinstance(decision, d.StartSegment):
            step = 0 if decision.resume_from is None else decision.resume_from.step
            self._queue.append(
                e.SegmentEnded(at=now, segment=decision.segment, step=step, cause="lost", detail=sentence)
            )
        self._queue.append(e.UserAsked(at=now, wish="pause"))
