"""Where trials may run: one entry for each place that `on=` can name. Nothing else looks into that word.

`on` is the name of a place, or the name, a colon and an address: "slurm:gpu". A place is loaded on first use. Other
packages add theirs under the entry point group "shoestring.backends": the name of the entry is that of the place, its
object a class that makes a `BackendPlace`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shoestring.errors import SpecError
from shoestring.kernel.types import THIS_MACHINE
from shoestring.values import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from shoestring.backends.site import Site
    from shoestring.market.priced import PricedMarket
    from shoestring.world.protocol import Backend

GROUP = "shoestring.backends"
_BUILT_IN = {
    "local": "shoestring.backends.local.place:LocalPlace",
    "inline": "shoestring.backends.inline.place:InlinePlace",
    "ray": "shoestring.backends.ray.place:RayPlace",
    "slurm": "shoestring.backends.slurm.place:SlurmPlace",
}


class Nodes(NamedTuple):
    """The size of a cluster that exists."""

    number: int
    slots: int
    """Of its smallest node."""
    labels: Mapping[str, Nodes] = MappingProxyType({})
    """Names by which some of its nodes can be requested, such as the features of Slurm, and the size of each part."""
    can_launch: bool = False
    """Nodes that are not there can be launched by commands of the user's own."""


class BackendPlace(Protocol):
    """One place. `address` is what follows the colon in `on`, or None."""

    forms: tuple[str, ...]
    """What a user may write, for hints: ("slurm", "slurm:PARTITION")."""
    machine: str
    """What a machine of this place is called where it is the user's own, without a market."""
    least_slice_s: float | None
    """Machines are prepaid for at least this many real seconds, so that a controller that has died can restart before
    they end. None: to the deadline, because a lease cannot be renewed while user code runs."""
    in_caller: bool
    """User code runs in the process of the caller: any function will do, Ctrl-C belongs to it, and only that program
    can resume the run."""

    def parse(self, address: str | None) -> None:
        """SpecError if that is no address of this place."""
        ...

    def check(self, address: str | None) -> Nodes | None:
        """Before a run starts: is everything there that it needs? The size of a cluster; None for this computer."""
        ...

    def survives_power_loss(self, address: str | None) -> bool:
        """Do its machines keep running when this computer loses power? Then the journal must survive that too."""
        ...

    def open(self, address: str | None, site: Site, market: PricedMarket) -> Backend: ...


class ThisComputerPlace:
    """What is common to places on this computer, which have no address and nothing to check."""

    forms: tuple[str, ...]
    machine = THIS_MACHINE
    in_caller = False

    def parse(self, address: str | None) -> None:
        if address is not None:
            name = self.forms[0]
            raise SpecError(f"on='{name}:{address}': this computer has no address", hint=f"use on={name!r}")

    def check(self, address: str | None) -> Nodes | None:  # noqa: ARG002
        return None

    def survives_power_loss(self, address: str | None) -> bool:  # noqa: ARG002
        """A power cut ends its processes too: entries need only survive kill -9."""
        return False


class RunPlace(NamedTuple):
    """The place a run is on: `on`, taken apart."""

    name: str
    address: str | None
    place: BackendPlace

    @property
    def on(self) -> str:
        return self.name if self.address is None else f"{self.name}:{self.address}"

    @property
    def is_this_computer(self) -> bool:
        """Trials are processes of this computer."""
        return self.place.machine == THIS_MACHINE and not self.place.in_caller

    def check(self) -> Nodes | None:
        return self.place.check(self.address)

    def survives_power_loss(self) -> bool:
        return self.place.survives_power_loss(self.address)

    def open(self, site: Site, market: PricedMarket) -> Backend:
        return self.place.open(self.address, site, market)


def find_place(on: object) -> RunPlace:
    """The place of `on`. SpecError, with a hint, if there is none."""
    name, colon, address = on.partition(":") if isinstance(on, str) else ("", "", "")
    load = _built_in(name) or dict(_of_other_packages()).get(name)
    if load is None:
        raise SpecError(f"on={on!r} is unknown", hint=did_you_mean(on, forms()))
    found = RunPlace(name, address if colon else None, load())
    found.place.parse(found.address)
    return found


def forms() -> list[str]:
    """Everything a user may write."""
    loads = [load for name in _BUILT_IN if (load := _built_in(name))]
    loads += [load for name, load in _of_other_packages() if name not in _BUILT_IN]
    return [form for load in loads for form in load().forms]


def _built_in(name: str) -> Callable[[], BackendPlace] | None:
    if name not in _BUILT_IN:
        return None
    module, _, kind = _BUILT_IN[name].partition(":")
    place: Callable[[], BackendPlace] = getattr(import_module(module), kind)
    return place


def _of_other_packages() -> Iterator[tuple[str, Callable[[], BackendPlace]]]:
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.name, partial(_load, entry)


def _load(entry: EntryPoint) -> BackendPlace:
    place: BackendPlace = entry.load()()
    return place
