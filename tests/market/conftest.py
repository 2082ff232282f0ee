"""Listings and real data for the market's tests."""

import os
from pathlib import Path

import pytest

from shoestring.kernel.types import Listing, Offer
from shoestring.market.catalog import catalog


@pytest.fixture
def real_data():
    """A file of real measurements, or a skipped test where there is none."""
    folder = Path(os.environ.get("SHOESTRING_DATA") or Path(__file__).parents[3] / "shared" / "data")

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"needs the real data file {name}: set SHOESTRING_DATA to the folder that has it")
        return path

    return find


@pytest.fixture
def spot_listing() -> Listing:
    return catalog.listing(catalog.machine("aws", "m6i.xlarge"), "us-east-1a", spot=True)


@pytest.fixture
def spot(spot_listing: Listing) -> Offer:
    return spot_listing.offer
