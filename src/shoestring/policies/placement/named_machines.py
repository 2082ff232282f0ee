"""Which machines a configuration names, in a space that holds machines beside hyper-parameters.

What it leaves open, because the space has no parameter for it or because that one does not apply, is for whoever rents
to choose. A trial has its machines to itself: what it costs is their price, whoever else runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoestring.kernel.types import Config, Listing, Offer
from shoestring.space.parameters import Role
from shoestring.space.space import Space
from shoestring.values import Value

Wanted = dict[Role, Value]
"""What a configuration says of its machines."""


def count_of(space: Space, config: Config) -> int:
    """How many machines a trial runs on."""
    return int(_said(space, config, "count") or 1)


def named_listings(space: Space, listings: Iterable[Listing], config: Config, worker_slots: int) -> list[Listing]:
    """What the configuration may run on: all that it names, large enough for a worker of so many slots."""
    wanted: Wanted = {role: value for role in space.roles if (value := _said(space, config, role)) is not None}
    return [x for x in listings if x.slots >= worker_slots and is_named(x.offer, wanted)]


def is_named(offer: Offer, wanted: Wanted) -> bool:
    """Is the offer of the type, in the zone and of the kind wanted, as far as any is?"""
    return (
        wanted.get("machine", offer.machine) == offer.machine
        and wanted.get("zone", offer.zone) == offer.zone
        and wanted.get("spot", offer.spot) == offer.spot
    )


def whole_slots(listing: Listing, worker_slots: int) -> int:
    """The slots of a machine that workers of so many can take."""
    return listing.slots // worker_slots * worker_slots


def _said(space: Space, config: Config, role: Role) -> Value:
    name = space.roles.get(role)
    return None if name is None else config.get(name)
