"""The market a run rents on, from the user's options, as plain data from which it can be opened again.

A market is part of a run's environment, not of its spec: the journal records what was decided and charged, the run's
folder stores the market beside it, so that a restarted controller finds the same prices and revocations.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoestring.backends.price_watch import read_price, recorded_prices
from shoestring.errors import SpecError
from shoestring.kernel.types import THIS_MACHINE, Fact, Listing
from shoestring.market.catalog import catalog
from shoestring.market.own import NodeType, OwnMarket
from shoestring.market.priced import PricedMarket
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.specs.own_nodes import NODE_FILES, read_nodes
from shoestring.specs.read_file import load_spec_file
from shoestring.units import parse_moment, show_duration
from shoestring.values import as_number, as_values, as_whole, did_you_mean

DAY_S = 86400.0
_LONGEST_DAYS = {"modern": 3650.0, "auction": 365.0}
"""Prices are made before a run starts, all of them: within seconds for so many days."""
SYNTHETIC = ("modern", "auction", "preemptible")
Kind = Literal["free", "modern", "auction", "preemptible", "prices", "own"]


class Machines(Fact, frozen=True, kw_only=True):
    """Instance types a run may rent. Made by `machines`."""

    provider: str
    names: tuple[str, ...]
    spot: bool | None = None
    """True: spot only; False: on-demand only; None: both."""
    named: bool = False
    """The user named each of them, so each must be for sale; else those count that are."""


def machines(
    provider: str = "aws",
    *,
    spot: bool | None = None,
    max_vcpus: float | None = None,
    min_vcpus: float | None = None,
    gpus: int | None = None,
    names: Iterable[str] | None = None,
) -> Machines:
    """Instance types of a provider by size: `ss.machines("aws", spot=True, max_vcpus=16)`."""
    named = names is not None
    found = catalog.machines(provider, max_vcpus=max_vcpus, min_vcpus=min_vcpus, gpus=gpus, names=names)
    return Machines(provider=provider, names=tuple(machine.name for machine in found), spot=spot, named=named)


class Market(Fact, frozen=True, kw_only=True):
    """Prices, revocations and what is for sale."""

    kind: Kind = "free"
    """free: own machines, free of charge · modern, auction: synthetic prices · preemptible: fixed prices, and machines
    are preempted after a day at most · prices: replayed from a file · own: machines of the user's own at their real
    prices, where nothing is simulated."""
    prices: str | None = None
    machines: Machines | None = None
    zones: tuple[str, ...] = ()
    slots: int | None = None
    """Per machine; default: its GPUs, or one. For this machine: its cores."""
    free_machine: str = THIS_MACHINE
    """Name of the machine that is free of charge, for kind free."""
    seed: int = 0
    knobs: dict[str, float] = {}
    """Other arguments of the simulated provider: interruptions_per_hour, denial_share, provision_s, start, ..."""
    nodes: tuple[NodeType, ...] = ()
    """For kind own: see `specs.own_nodes`."""
    speedup: float = 1.0
    """Market seconds per real second: 900 makes a market hour pass in four seconds."""

    def open(self, deadline_s: float = 0.0) -> SimulatedProvider:
        """The market, with prices for at least as long as the run may last."""
        days = max(31.0, math.ceil(deadline_s / DAY_S) + 1.0)
        longest = _LONGEST_DAYS.get(self.kind, math.inf)
        if days > longest + 1:
            raise SpecError(
                f"a deadline of {show_duration(deadline_s)} is longer than the prices of a {self.kind} market",
                hint=f"at most {longest:g}d; preemptible machines and those free of charge have no such limit",
            )
        match self.kind:
            case "free":
                return SimulatedProvider.free(self.slots or os.cpu_count() or 1, self.free_machine)
            case "modern":
                return SimulatedProvider.modern(self._listings(), seed=self.seed, days=days, **self.knobs)
            case "auction":
                return SimulatedProvider.auction(self._listings(), seed=self.seed, days=days, **self.knobs)
            case "preemptible":
                return SimulatedProvider.preemptible(self._listings(), seed=self.seed, days=days, **self.knobs)
            case "own":
                return self._own().simulated(self.seed)
            case "prices":
                return SimulatedProvider.from_prices(
                    self.prices or "",
                    machines=None if self.machines is None else self.machines.names,
                    zones=self.zones or None,
                    slots=self.slots,
                    seed=self.seed,
                    **self.knobs,
                )

    def open_live(self, deadline_s: float = 0.0) -> PricedMarket:
        """The market of a live run. Nothing is drawn for machines of the user's own: what happens to them is seen."""
        if self.kind == "free":
            return PricedMarket.own(self.slots or os.cpu_count() or 1, self.free_machine)
        return self._own() if self.kind == "own" else self.open(deadline_s)

    def open_recorded(self, run_dir: Path, deadline_s: float = 0.0) -> PricedMarket:
        """The market of a run that is only looked at: prices of the user's own machines are those it has recorded."""
        if self.kind != "own":
            return self.open(deadline_s)
        recorded = recorded_prices(run_dir)
        market = OwnMarket(self.nodes, [node.usd_per_hour or node.list_usd_per_hour for node in self.nodes])
        for offer, points in recorded.items():
            market.book.begin_with(offer, sorted(points), [points[at] for at in sorted(points)])
        return market

    def _own(self) -> OwnMarket:
        return OwnMarket(self.nodes, [read_price(node)[-1].usd_per_hour for node in self.nodes])

    def listings(self, provider: PricedMarket) -> tuple[Listing, ...]:
        """The offers of the market that the run may rent."""
        wanted = None if self.machines is None else self.machines.spot
        found = tuple(x for x in provider.listings if wanted is None or x.offer.spot == wanted)
        if not found:
            raise SpecError("none of the requested machines is for sale", hint="leave machines or zones out")
        if self.machines is not None and self.machines.named:
            _check_sold("machine", self.machines.names, {x.offer.machine for x in found})
        _check_sold("zone", self.zones, {x.offer.zone for x in found})
        return found

    def _listings(self) -> tuple[Listing, ...]:
        legacy = self.kind == "preemptible"
        usual = ("gcp", catalog.PREEMPTIBLE_MACHINES) if legacy else ("aws", catalog.DEFAULT_MACHINES)
        chosen = self.machines or Machines(provider=usual[0], names=usual[1])
        found: list[Listing] = []
        for name in chosen.names:
            machine = catalog.machine(chosen.provider, name)
            for zone in self.zones or machine.zones[:3]:
                found += [
                    catalog.listing(machine, zone, spot=spot, slots=self.slots, legacy_preemptible=legacy and spot)
                    for spot in (True, False)
                ]
        return tuple(found)


def _check_sold(what: str, wanted: Iterable[str], sold: set[str]) -> None:
    """A price file need not have all that the catalogue has."""
    for name in wanted:
        if name not in sold:
            raise SpecError(f"{what}={name!r} is not for sale on this market", hint=f"it has {', '.join(sorted(sold))}")


_KNOBS = {
    "modern": ("interruptions_per_hour", "shocks_per_hour", "shock_share", "denial_share", "provision_s"),
    "auction": ("denial_share", "provision_s"),
    "preemptible": ("price_share", "denial_share", "provision_s"),
    "prices": ("interruptions_per_hour", "denial_share", "provision_s", "max_gap_s", "start"),
    "free": (),
    "own": (),
}
OWN_OPTIONS = ("kind", "nodes", "folder", "seed", "speedup")
_OPTIONS = ("kind", "nodes", "prices", "provider", "machines", "zones", "slots", "seed", "speedup")


def make_market(requested: object, **more: object) -> Market:
    """A market from the name of a synthetic one, a price file's path, None (this machine) or a mapping of options."""
    options: dict[str, Any] = (
        {"kind": requested} if requested is None or isinstance(requested, str | os.PathLike) else {}
    )
    if isinstance(requested, Market):
        options = {name: value for name, value in msgspec.structs.asdict(requested).items() if value}
        options |= options.pop("knobs", {})
    elif isinstance(requested, Mapping):
        options = dict(requested)
    elif not options:
        raise SpecError(
            f"market={requested!r} is not a market", hint="use 'modern', 'auction' or the path of a price file"
        )
    options |= {name: value for name, value in more.items() if value is not None}
    if isinstance(options.get("kind"), str | os.PathLike):
        options |= _node_file(options["kind"])
    kind, prices = _kind(options)
    known = OWN_OPTIONS if kind == "own" else (*_OPTIONS, *_KNOBS[kind])
    if unknown := [str(name) for name in options if name not in known]:
        if kind == "own" and unknown[0] in _OPTIONS:
            raise SpecError(
                f"market: {unknown[0]} has no meaning for nodes of your own", hint="say it of each type, under nodes"
            )
        if having := [other for other in _KNOBS if unknown[0] in _KNOBS[other]]:
            raise SpecError(
                f"market: {unknown[0]} has no meaning for machines of kind {kind!r}",
                hint=f"leave it out, or choose another market: {', '.join(having).replace('prices', 'a price file')}",
            )
        raise SpecError(f"market: {unknown[0]} is unknown", hint=did_you_mean(unknown[0], known))
    speedup = as_number(options.get("speedup", 1.0), "speedup")
    if not speedup > 0:
        raise SpecError(f"speedup={speedup:g} must be more than 0", hint="900 makes a market hour pass in 4 seconds")
    return Market(
        kind=kind,
        prices=None if prices is None else os.path.abspath(prices),
        machines=_chosen(options),
        zones=tuple(map(str, as_values(options.get("zones", ()), "zones"))),
        slots=None if options.get("slots") is None else as_whole(options["slots"], "slots"),
        seed=as_whole(options.get("seed", 0), "seed"),
        nodes=read_nodes(options["nodes"], options.get("folder", "")) if kind == "own" else (),
        knobs={name: _knob(name, options[name]) for name in _KNOBS[kind] if name in options},
        speedup=speedup,
    )


def _node_file(path: str | os.PathLike[str]) -> dict[str, object]:
    """The options in a file that describes the user's own nodes; none if it is no such file."""
    if not os.fspath(path).endswith(NODE_FILES):
        return {}
    fields = load_spec_file(path)
    if "nodes" not in fields:
        raise SpecError(
            f"market: {os.fspath(path)} describes no nodes", hint="it needs a list of them, nodes, each with a label"
        )
    return {**fields, "kind": "own", "folder": os.path.dirname(os.path.abspath(path))}


def _knob(name: str, value: object) -> float:
    return parse_moment(value, f"market: {name}") if name == "start" else as_number(value, name)


def _kind(options: Mapping[str, Any]) -> tuple[Kind, str | None]:
    kind, prices = options.get("kind"), options.get("prices")
    if kind in (*SYNTHETIC, "free"):
        return kind, None
    if kind == "own" or (kind is None and "nodes" in options):
        if not options.get("nodes"):
            raise SpecError(
                "market: own names no nodes", hint="list them under nodes, or give the path of a file that does"
            )
        return "own", None
    if kind in (None, "none", "local", "prices"):
        if prices is None and kind == "prices":
            raise SpecError("market: prices names no file", hint="give the path of a price file")
        if prices is not None:
            return "prices", os.fspath(prices)
        # Naming machines implies a market to rent them on.
        return ("modern" if options.get("machines") or options.get("provider") else "free"), None
    if os.path.exists(kind) or os.path.splitext(kind)[1]:
        return "prices", os.fspath(kind)
    hint = f"{did_you_mean(kind, (*SYNTHETIC, 'own'))}; or give the path of a price file"
    raise SpecError(f"market={kind!r} is unknown", hint=hint)


def _chosen(options: Mapping[str, Any]) -> Machines | None:
    requested, provider = options.get("machines"), options.get("provider")
    if provider is None and options.get("kind") == "preemptible" and requested is not None:
        provider = "gcp"  # the only one that sells these
    if isinstance(requested, Machines):
        return requested
    if isinstance(requested, Mapping):
        try:
            return machines(**{"provider": provider or "aws", **requested})
        except TypeError as error:
            raise SpecError(f"machines: {error}", hint="for example machines: {max_vcpus: 16, spot: true}") from None
    if requested is None:
        return None if provider is None else machines(str(provider), max_vcpus=8, gpus=0)
    return machines(str(provider or "aws"), names=map(str, as_values(requested, "machines")))
