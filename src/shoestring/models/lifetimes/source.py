"""The lifetime model of an offer: fitted or assumed beforehand, and corrected by what the run observed, per machine
type and zone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shoestring.kernel.types import Listing, Offer
from shoestring.kernel.view import RunView
from shoestring.market import preemptible_2019
from shoestring.models.lifetimes.families import Exponential, Weibull
from shoestring.models.lifetimes.fit import LEAST_DEATHS
from shoestring.models.lifetimes.groups import LifetimeGroup, multiplier_in_run, scaled, seen_in_run
from shoestring.models.lifetimes.model import HOUR_S, LifetimeModel
from shoestring.models.lifetimes.saved import SavedLifetimes

GOOGLE = "gcp"
ROUNDING = 1.25
"""The run's correction changes in steps this large: everything computed from a model is cached until the next."""


@dataclass(frozen=True)
class LifetimeSource:
    fitted: SavedLifetimes | None = None
    interruptions_per_hour: float = 0.02
    """Of a spot machine without a limit and without data."""

    def for_offer(self, view: RunView, listing: Listing, launched_at: float | None = None) -> LifetimeModel | None:
        """Of a machine launched at this time, or now. None: it is not preemptible."""
        if not listing.offer.spot:
            return None
        model = self._before_the_run(listing, view.now if launched_at is None else launched_at)
        seen = multiplier_in_run(self._seen(view), listing.offer)
        return scaled(model, ROUNDING ** round(math.log(seen, ROUNDING)))

    def is_known(self, view: RunView, listing: Listing) -> bool:
        """Is the model more than an assumption? If it was fitted, beforehand or for Google's machines with their limit,
        or once enough machines of the run were preempted."""
        if self.fitted is not None or is_like_2019(listing):
            return True
        return sum(group.deaths for group in self._seen(view).values()) >= LEAST_DEATHS

    def _before_the_run(self, listing: Listing, launched_at: float = math.nan) -> LifetimeModel:
        machine, zone = listing.offer.machine, listing.offer.zone
        if self.fitted is not None:
            return self.fitted.model_for(machine, zone, launched_at)
        if listing.max_life_s is not None:
            model = Weibull(scale_s=preemptible_2019.SCALE_S, shape=preemptible_2019.SHAPE, limit_s=listing.max_life_s)
            return scaled(model, preemptible_2019.hazard(machine, zone))
        return Exponential(scale_s=HOUR_S / self.interruptions_per_hour)

    def _seen(self, view: RunView) -> dict[Offer, LifetimeGroup]:
        """What the run has observed of each spot offer. Needed for every offer in turn, so it is kept for as long as
        nothing can have changed."""
        moment = (view.now, sum(account.leases for account in view.accounts.values()))
        kept: dict[object, dict[Offer, LifetimeGroup]] = view.memo("lifetimes seen", dict)
        if moment not in kept:
            kept.clear()
            leases = list(view.leases.values())
            used = sorted({*view.accounts, *(lease.offer for lease in leases)})
            kept[moment] = {
                offer: seen_in_run(
                    self._before_the_run(view.listings[offer]), offer, leases, view.accounts.get(offer), view.now
                )
                for offer in used
                if offer.spot
            }
        return kept[moment]


def is_like_2019(listing: Listing) -> bool:
    """Google's machines that are preempted after a day at the latest. Nodes of one's own cluster may be such
    machines."""
    known = listing.offer.provider == GOOGLE or listing.offer.machine in preemptible_2019.BY_MACHINE
    return known and listing.max_life_s is not None
