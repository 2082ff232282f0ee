"""Whole studies with bids, rotations and revocation models, longer than most: every guarantee holds, and no policy sees
later prices."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from msgspec.structs import replace as spec_with

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Listing
from tests.properties.test_invariants import check_invariants
from tests.studies import random_case

OPTIONS = [
    {"placement": "refund_seeking"},
    {"placement": "spottune_as_printed"},
    {"placement": "cheapest_step", "revocations": "frequency", "rotate": "20m"},
]
STUDIES = 8


def _refunding(listing: Listing) -> Listing:
    return spec_with(listing, slots=1, billing="aws_spot" if listing.offer.spot else "per_second")


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options["placement"])
def test_budget_deadline_and_checkpoints_hold_and_scrambled_later_prices_change_no_decision(options: dict) -> None:
    requested, moved = 0, 0
    for number in range(STUDIES):
        case = random_case(random.Random(f"bids/{number}"))
        spec = spec_with(
            case.spec,
            recipe="spottune",
            max_steps=30,
            deadline_s=86400.0,
            budget_usd=20 * case.spec.budget_usd,
            slice_s=900.0,
            listings=tuple(_refunding(listing) for listing in case.spec.listings),
            options={"checkpointing": case.spec.options["checkpointing"], **options},
        )
        case = replace(case, spec=spec, base_step_s=900.0, provision_s=40.0)
        decisions = [x for entry in check_invariants(case) for x in entry.decisions]
        requested += sum(isinstance(x, d.RequestLease) for x in decisions)
        moved += sum(isinstance(x, d.HaltSegment) and "moved to another machine" in x.why for x in decisions)
    assert requested > 100
    assert moved > 10
