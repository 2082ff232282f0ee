"""Can this run ever get a machine to work on? What can never be had is refused before the start, with the way out.

The guard would refuse it too, or the market deny it, but only while the run waits, and for as long as it may last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import LOCAL, Listing
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.placement.renting.least_time import LEAST_CHARGED_S
from shoestring.units import show_duration

LEAST_WORKING_SHARE = 0.1
"""Of a slice: what must be left of it for work, beside the start of a machine and the wind-down."""


def check_rentable(spec: RunSpec, policies: Sequence[Policy], start_s: float) -> None:
    """`start_s`: how long a machine may take to start, as far as it is known; 0 where it is not."""
    _check_slots(spec, spec.listings, "on offer")
    _check_kinds(spec, policies)
    _check_slice(spec, start_s)
    _check_deadline(spec, start_s)


def _check_slots(spec: RunSpec, listings: Iterable[Listing], which: str) -> None:
    """A worker runs on one machine; only a gang of workers may span several."""
    largest = max(listings, key=lambda listing: listing.slots)
    if spec.slots <= largest.slots:
        return
    more = (
        "give this machine more slots than cores with market={'slots': ...}"
        if largest.offer.provider == LOCAL
        else "name larger machine types, or divide machines into more slots with market={'slots': ...}"
    )
    raise SpecError(
        f"slots={spec.slots} is more than any machine {which} has: the largest, {largest.offer}, has {largest.slots}",
        hint=f"lower slots to {largest.slots}, or {more}",
    )


def _check_kinds(spec: RunSpec, policies: Sequence[Policy]) -> None:
    from shoestring.policies.placement.spottune.as_printed import AsPrinted

    for placement, kind, is_spot in ((OnDemand, "on-demand", False), (AsPrinted, "spot", True)):
        if not any(isinstance(policy, placement) for policy in policies):
            continue
        listings = [listing for listing in spec.listings if listing.offer.spot == is_spot]
        if not listings:
            raise SpecError(
                f"this placement rents {kind} machines only, and none is on offer",
                hint=f"allow {kind} machines (spot in `machines`), or use another placement",
            )
        _check_slots(spec, listings, f"on offer as {kind}")


def _check_slice(spec: RunSpec, start_s: float) -> None:
    """Machines are prepaid for a slice; all of it may be over before a trial can start."""
    needed_s = start_s + spec.wind_down_s
    if spec.slice_s - needed_s >= LEAST_WORKING_SHARE * spec.slice_s:
        return
    least_s = needed_s / (1 - LEAST_WORKING_SHARE)
    starts = f", and a machine may take {show_duration(start_s)} to start" if start_s else ""
    raise SpecError(
        f"slice_s={spec.slice_s:g} leaves no time to work: trials save and stop wind_down_s={spec.wind_down_s:g} "
        f"seconds before the slice ends{starts}",
        hint=f"give slice_s of at least {round(least_s + 0.5)}, or a shorter wind_down_s",
    )


def _check_deadline(spec: RunSpec, start_s: float) -> None:
    charged = any(listing.billing != "free" for listing in spec.listings)
    least_s = max(start_s + spec.wind_down_s, LEAST_CHARGED_S if charged else 0.0)
    if spec.deadline_s > least_s:
        return
    raise SpecError(
        f"a deadline of {show_duration(spec.deadline_s)} leaves no time for a machine: it may take "
        f"{show_duration(start_s)} to start, and {show_duration(spec.wind_down_s)} before the deadline trials save "
        "and stop",
        hint=f"give a deadline of more than {show_duration(max(least_s, LEAST_CHARGED_S))}",
    )
