"""LiveWorld: timers, one backend, slow thoughts and people's wishes, turned into events as they really happen."""

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
    """A backend whose machines end with this process, and which therefore must be told what it once held."""

    def recall(self, request: d.RequestLease, granted_at: float) -> None: ...


class LiveWorld:
    def __init__(
        self,
        backend: Backend,
        clock: RunClock,
        feed: PriceFeed,
        store: CheckpointStore,
        *,
        run_dir: Path | None = None,
        thoughts: BackgroundTasks | None = None,
    ) -> None:
        """`run_dir`: where other processes leave their wishes."""
        self.backend = backend
        self.clock = clock
        self.feed = feed
        self.trouble: list[str] = []
        """What could not be done, in words: the reasons for pauses nobody asked for."""
        self._store = store
        self._thoughts = SubprocessTasks() if thoughts is None else thoughts
        self._wishes = UserRequests(clock, run_dir)
        self._retries = Retries(self._act, self._give_up)
        self._queue: deque[e.Event] = deque()
        self._timers: dict[str, d.WakeAt] = {}
        self._heap: list[tuple[float, str]] = []
        """Times to look at timers; those of moved or void ones are skipped when they come up."""
        self._strays: set[LeaseId] = set()
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
        unfinished = PendingOrders(past.entries)
        if isinstance(self.backend, Forgetful):
            for lease, granted_at in unfinished.granted_at.items():
                self.backend.recall(unfinished.prepaid(lease), granted_at)
        for order in unfinished.orders():
            self.carry_out(order)
        for lease in self.backend.inventory():
            if lease not in unfinished.leases:
                self._strays.add(lease)
                self._retries.do(d.ReleaseLease(lease=lease, why="the journal knows nothing of it"))

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
            self._thoughts.ask(decision)

    # -- for the rest of the program -----------------------------------------------------------------------------------
    def ask(self, wish: e.Wish, *, budget_usd: float | None = None, deadline_s: float | None = None) -> None:
        """Bring a person's wish into the run. Safe in any thread and in a signal handler."""
        self._wishes.ask(wish, budget_usd, deadline_s)

    def close(self) -> None:
        """Let go of what this process holds; machines and user code go on."""
        self._wishes.close(self._queue)
        self._thoughts.close()
        self.backend.close()

    # -- inside --------------------------------------------------------------------------------------------------------
    def _collect(self) -> None:
        """Everything that has happened since the last look, in the order it happened."""
        self._retries.again()
        found: list[e.Event] = [*self._wishes.ready(), *self.backend.poll()]
        for thought in self._thoughts.ready():
            now = self.clock.now()
            if thought.error:
                found.append(e.PolicyBroke(at=now, detail=thought.error))
            else:
                found.append(e.ThoughtReady(at=now, name=thought.name, answer=thought.answer))
        if self._strays:
            found = [event for event in found if getattr(event, "lease", None) not in self._strays]
        for event in found:
            if type(event) is e.LeaseEnded or type(event) is e.LeaseDenied:
                self._void(event.lease)
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

    def _void(self, lease: LeaseId) -> None:
        for name in [name for name, timer in self._timers.items() if timer.about == lease]:
            del self._timers[name]

    def _until_next_timer_s(self) -> float:
        if not self._heap:
            return _LONGEST_NAP_S
        return max(0.0, self.clock.wall(self._heap[0][0]) - time.time())

    def _act(self, decision: d.Decision) -> None:
        self._orders[type(decision)](decision)

    def _give_up(self, decision: d.Decision, error: ShoestringError) -> None:
        """It cannot be done. The state must not wait for it, and a person has to look: the run pauses."""
        now = self.clock.now()
        sentence = f"{type(decision).__name__}: {error}" + (f" ({error.hint})" if error.hint else "")
        self.trouble.append(sentence)
        if isinstance(decision, d.DropCheckpoint):
            return  # it takes some space, nothing worse
        if isinstance(decision, d.RequestLease):
            self._queue.append(e.LeaseDenied(at=now, lease=decision.lease, reason="quota"))
        elif isinstance(decision, d.StartSegment):
            step = 0 if decision.resume_from is None else decision.resume_from.step
            self._queue.append(
                e.SegmentEnded(at=now, segment=decision.segment, step=step, cause="lost", detail=sentence)
            )
        self._queue.append(e.UserAsked(at=now, wish="pause"))
