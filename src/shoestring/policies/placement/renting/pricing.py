"""What an hour of one slot costs: the unit in which machines of different sizes compare."""

from __future__ import annotations

from shoestring.kernel.types import Listing


def per_slot(usd_per_hour: float, listing: Listing) -> float:
    return usd_per_hour / listing.slots
