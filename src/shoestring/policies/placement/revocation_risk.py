"""How likely a machine is to be preempted: from an assumed rate and the preemptions of this run, or from prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView

if TYPE_CHECKING:
    from shoestring.models.revocation.model import RevocationModel


@dataclass(frozen=True)
class AssumedRate:
    """One rate for all spot machines, corrected by the preemptions of this run. The maximum price is ignored."""

    per_hour: float = 0.02
    """Of a spot machine that this run has not observed."""

    def chances(self, state: RunView, listings: Sequence[Listing], _maxima: Sequence[float | None], /) -> list[float]:
        from shoestring.models.offer_cost import interruption_chance

        return [interruption_chance(state, listing, self.per_hour) for listing in listings]


@dataclass(frozen=True)
class FromPrices:
    """A revocation model, given the prices up to now and the maximum price."""

    model: RevocationModel | None = None
    """None: how often the price of the last days rose so far within an hour. Nothing has to be trained."""

    def chances(self, state: RunView, listings: Sequence[Listing], maxima: Sequence[float | None], /) -> list[float]:
        from shoestring.models.revocation.current import chances_now
        from shoestring.models.revocation.rises import RelativeRises

        return chances_now(self.model or RelativeRises(), state, listings, maxima)
