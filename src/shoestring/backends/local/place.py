"""`on="local"`: worker processes on this computer, leased from a simulated market or free of charge.

On a market a preempted machine gets a notice, then its processes get SIGKILL, in market time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.backends.registry import ThisComputerPlace

if TYPE_CHECKING:
    from shoestring.backends.site import Site
    from shoestring.market.priced import PricedMarket
    from shoestring.world.protocol import Backend


class LocalPlace(ThisComputerPlace):
    forms = ("local",)
    least_slice_s: float | None = 4.0

    def open(self, address: str | None, site: Site, market: PricedMarket) -> Backend:  # noqa: ARG002
        from shoestring.backends.machines import ThisComputer
        from shoestring.backends.on_market import on_market
        from shoestring.backends.orders import ProcessesHere
        from shoestring.backends.processes import ProcessBackend

        return ProcessBackend(site, on_market(ThisComputer(), market, site), ProcessesHere(), market)
