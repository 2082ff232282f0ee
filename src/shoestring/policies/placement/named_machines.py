"""The machines that a configuration names, in a space that has machine parameters beside hyper-parameters.

Placement chooses what the configuration leaves open: the space has no parameter for it, or that parameter does not
apply. A trial has its machines to itself, so its cost is their price, whatever else runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoestring.kernel.types import Config, Listing, Offer
from shoestring.space.parameters import Role
from shoestring.space.space import Space
from shoestring.values import Value

Wanted = dict[Role, Value]
"""What a configuration requires of its machines."""


def count_of(space: Space, config: Config) -> int:
    """How many machines a trial runs on."""
    return int(_value_for(space, config, "count") or 1)


def named_listings(space: Space, listings: Iterable[Listing], config: Config, worker_slots: int) -> list[Listing]:
    """What the configuration may run on: all that it names, large enough for a worker of this many slots."""
    wanted: Wanted = {role: value for role in space.roles if (value := _value_for(space, config, role)) is not None}
    return [x for x in listings if x.slots >= worker_slots and is_named(x.offer, wanted)]


def is_named(offer: Offer, wanted: Wanted) -> bool:
    """Does the offer match the required machine type, zone and kind (spot or on-demand), where there is one?"""
    return (
        wanted.get("machine", offer.machine) == offer.machine
        and wanted.get("zone", offer.zone) == offer.zone
        and wanted.get("spot", offer.spot) == offer.spot
    )


def whole_slots(listing: Listing, worker_slots: int) -> int:
    """Slots of a machine that whole workers of this many slots can use."""
    return listing.slots // worker_slots * worker_slots


def _value_for(space: Space, config: Config, role: Role) -> Value:
    name = space.roles.get(role)
    return None if name is None else config.get(name)
