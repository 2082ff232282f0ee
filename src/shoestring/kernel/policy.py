"""The one protocol of search, placement, checkpointing and housekeeping: a frozen object that decides.

No clock, no I/O, no memory of its own: what a policy must remember about a job goes in the job's tags, the rest can be
rebuilt from the state. It does not log either: the `why` of its decisions is its log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from shoestring.kernel.decisions import Decision
from shoestring.kernel.events import Event
from shoestring.kernel.types import Offer, PriceHistory

if TYPE_CHECKING:
    from shoestring.kernel.view import RunView

Waker = type[Event] | type[Decision]


class Policy(Protocol):
    @property
    def wants(self) -> frozenset[Waker]:
        """The events for which it is called, and the decisions of policies before it, in the same turn, that wake
        it."""
        ...

    def decide(self, state: RunView, event: Event) -> Iterable[Decision]:
        """Proposed decisions. Best yielded lazily: each is folded into `state` before the next is requested."""
        ...


Guard = Callable[["RunView", Decision], Decision]
"""Every proposed decision passes it; it returns that decision, a smaller one, or Refused."""


class PriceFeed(Protocol):
    """Where prices come from. Only `RunView` queries it, and only for what was known at the event being handled."""

    def usd_per_hour(self, offer: Offer, at: float) -> float: ...

    def history(self, offer: Offer, until: float) -> PriceHistory: ...
