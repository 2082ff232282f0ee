"""`on="inline"`: trials in the process of the caller, one after the other, to debug them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.backends.registry import ThisComputerPlace

if TYPE_CHECKING:
    from shoestring.backends.site import Site
    from shoestring.market.priced import PricedMarket
    from shoestring.world.protocol import Backend


class InlinePlace(ThisComputerPlace):
    forms = ("inline",)
    least_slice_s: float | None = None
    in_caller = True

    def open(self, address: str | None, site: Site, market: PricedMarket) -> Backend:  # noqa: ARG002
        from shoestring.backends.inline.backend import InlineBackend
        from shoestring.backends.machines import ThisComputer
        from shoestring.backends.on_market import on_market

        return InlineBackend(site, on_market(ThisComputer(), market, site, outlives=False), market)
