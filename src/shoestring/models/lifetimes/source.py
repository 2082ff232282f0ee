"""The lifetime model of an offer: fitted or assumed beforehand, and corrected by what the run observed."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from shoestring.kernel.types import Listing
from shoestring.kernel.view import RunView
from shoestring.models.lifetimes.families import Exponential, Weibull
from shoestring.models.lifetimes.groups import multiplier_in_run, scaled
from shoestring.models.lifetimes.model import HOUR_S, LifetimeModel
from shoestring.models.lifetimes.saved import SavedLifetimes

GOOGLE_SCALE_S, GOOGLE_SHAPE = 197 * HOUR_S, 0.33
"""Google's preemptible machines of 2019, as in `market.simulated.lifetimes.GooglePreemptible`: the young go first."""
ROUNDING = 1.25
"""The run's correction changes in steps this large: everything computed from a model is cached until the next."""


@dataclass(frozen=True)
class LifetimeSource:
    fitted: SavedLifetimes | None = None
    interruptions_per_hour: float = 0.02
    """Of a spot machine without a limit and without data."""

    def for_offer(self, view: RunView, listing: Listing) -> LifetimeModel | None:
        """None: it is not preemptible."""
        if not listing.offer.spot:
            return None
        model = self._before_the_run(listing)
        return scaled(model, ROUNDING ** round(log(_seen(view, model), ROUNDING)))

    def _before_the_run(self, listing: Listing) -> LifetimeModel:
        if self.fitted is not None:
            return self.fitted.model_for(listing.offer.machine, listing.offer.zone)
        if listing.max_life_s is not None:
            return Weibull(scale_s=GOOGLE_SCALE_S, shape=GOOGLE_SHAPE, limit_s=listing.max_life_s)
        return Exponential(scale_s=HOUR_S / self.interruptions_per_hour)


def _seen(view: RunView, model: LifetimeModel) -> float:
    """The hazard of the run's machines so far, as a multiple of this model's. Needed for every offer in turn, so it is
    cached for as long as nothing can have changed."""
    moment = (view.now, sum(account.leases for account in view.accounts.values()))
    kept: dict[object, dict[LifetimeModel, float]] = view.memo("lifetimes seen", dict)
    if moment not in kept:
        kept.clear()
    of_now = kept.setdefault(moment, {})
    if model not in of_now:
        of_now[model] = multiplier_in_run(model, list(view.leases.values()), view.accounts, view.now)
    return of_now[model]
