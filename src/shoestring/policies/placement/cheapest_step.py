"""The offer with the least expected cost per step: speed, price and preemption risk in one number.

A machine that is cheap by the hour may be slow, and a fast one may be preempted before it finishes a step. The cost of
a step weighs all three, over machine types, zones and providers, spot and on-demand alike. It is updated with the
speeds that trials report and with the preemptions of this run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoestring.kernel.types import Offer
from shoestring.kernel.view import RunView
from shoestring.models.speed.latencies import learned_latencies
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.revocation_risk import AssumedRate, FromPrices

if TYPE_CHECKING:
    from shoestring.models.offer_cost import OfferPrice
    from shoestring.models.step_cost import Overheads


@dataclass(frozen=True)
class CheapestStep(Cheapest):
    """Paper: SpotTune Alg. 1 l.1-9, corrected.

    Differs from the paper: no bid and no hourly rotation. On markets of today a bid does not buy a refund, and moving a
    trial costs a start.
    """

    risk: AssumedRate | FromPrices = AssumedRate()  # noqa: RUF009  # frozen

    def _spot_and_on_demand(self, state: RunView) -> list[tuple[Offer, str]]:
        from shoestring.models.step_cost import Overheads

        latencies = learned_latencies(state)
        seen = Overheads(latencies.provision_s, latencies.restore_s, latencies.save_s)
        return [
            (
                row.listing.offer,
                f"${row.usd_per_step:.3g} per step: ${row.usd_per_hour:.4f}/h, {row.step_s:.3g} s per step, "
                f"{row.chance:.1%} chance of preemption per hour{self._remark(state, row.listing.offer)}",
            )
            for row in self._prices(state, seen)
        ]

    def _prices(self, state: RunView, seen: Overheads) -> Sequence[OfferPrice]:
        """Best first, for the trial that has waited longest."""
        from shoestring.models.offer_cost import offer_prices

        return offer_prices(state, next(iter(state.waiting)), seen, self.risk)

    def _remark(self, _state: RunView, _offer: Offer) -> str:
        return ""
