"""A resolved run request: the spec, its market, where its code runs and where it is stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any, Self

import msgspec

from shoestring import recipes
from shoestring.backends.registry import RunPlace, find_place
from shoestring.backends.site import LEAST_WIND_DOWN_S
from shoestring.errors import PermanentError, SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import THIS_MACHINE
from shoestring.market.priced import PricedMarket
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.policies.search.run_to_completion import Grid
from shoestring.recipes.options.model_files import LIFETIMES_FILE, MODEL_FILE, refuse_hindsight
from shoestring.recipes.options.parse import with_current_values
from shoestring.specs.build import check_affordable, make_spec
from shoestring.specs.import_order import check_reached
from shoestring.specs.job_table import with_table
from shoestring.specs.machines import machine_names, resolve_machines
from shoestring.specs.market import Market, make_market
from shoestring.specs.own_nodes import on_cluster
from shoestring.specs.rentable import check_rentable
from shoestring.worker.loading import address_of

MARKET_FIELDS = ("machines", "zones", "provider", "speedup", "interruptions_per_hour")
"""Accepted at the top level of a call for convenience; they belong to the market."""


@dataclass(frozen=True)
class RunRequest:
    spec: RunSpec
    policies: tuple[Policy, ...]
    """Those of the spec's recipe. Built once: a recipe may have to plan before it knows that it can be met."""
    market: Market
    provider: PricedMarket
    place: RunPlace
    function: Callable[..., object] | None
    """The function itself, for `inline`; other backends import it by its address in the spec."""
    folder: Path
    """Where user code runs."""
    store: str | Path | None
    fresh: bool
    simulation: Mapping[str, object]
    """Options of the simulation: seconds_per_step, checkpoint_gb, like."""

    @classmethod
    def resolve(
        cls,
        code: Any,
        fields: Mapping[str, object],
        *,
        kind: str,
        source: str,
        runs_code: bool,
        folder: Path | None = None,
    ) -> Self:
        """Resolve the user's fields. Without `runs_code` (a simulation) the code is not needed."""
        given = {field: value for field, value in fields.items() if value is not None}
        if "listings" in given:
            raise SpecError("listings cannot be given here", hint="choose with machines=, zones= and market=")
        folder = folder or Path.cwd()
        given = with_table(given, folder)
        place = find_place(given.pop("on", "local"))
        store, fresh = given.pop("store", None), bool(given.pop("fresh", False))
        simulation = given.pop("simulate", {})
        market_options = {field: given.pop(field) for field in MARKET_FIELDS if field in given}
        requested_market = given.pop("market", None if runs_code else "modern")
        if names := machine_names(given.get("space", {})):
            _sell(names, requested_market, market_options, place)
        market = make_market(requested_market, **market_options)
        if runs_code:
            market = _on_nodes(place, market, given)
        if code is not None:
            given |= _named(code, given, folder, any_function=place.place.in_caller or not runs_code)
        if kind == "bag":
            given.setdefault("recipe", "given")
        if market.kind == "free":
            given.setdefault("max_machines", 1)  # this one; its slots are its cores
        spec = make_spec({"kind": kind, **given}, source=source, needs_code=runs_code)
        spec = msgspec.structs.replace(spec, options=with_current_values(spec.options))
        for file in (MODEL_FILE, LIFETIMES_FILE):
            spec = file.pinned(spec, folder)
        if runs_code:
            _check_program(spec, folder)
        if runs_code:
            spec = _in_real_time(spec, market, place, slice_given="slice_s" in given)
        if not market.seed:
            market = msgspec.structs.replace(market, seed=spec.seed)
        provider = market.open_live(spec.deadline_s) if runs_code else market.open(spec.deadline_s)
        spec = msgspec.structs.replace(spec, listings=market.listings(provider))
        _check_prices(spec, provider)
        with _naming(source):
            spec = resolve_machines(spec, trials_given="trials" in given)
        # With the listings: some recipes need them to see that budget or deadline do not suffice.
        policies = tuple(recipes.build(spec))
        recipes.refuse_early_stopping(spec)
        with _naming(source):
            check_rentable(spec, policies, _start_s(provider))
        for grid in (policy for policy in policies if isinstance(policy, Grid)):  # it determines the number of trials
            spec = msgspec.structs.replace(spec, trials=len(spec.given) + spec.space.grid_size(grid.points))
        if market.kind == "prices":
            refuse_hindsight(spec, provider.start)
        return cls(
            spec=spec,
            policies=policies,
            market=market,
            provider=provider,
            place=place,
            function=code if callable(code) else None,
            folder=folder,
            store=store if isinstance(store, str | Path) else None,
            fresh=fresh,
            simulation=simulation if isinstance(simulation, Mapping) else {},
        )

    def simulated_provider(self) -> SimulatedProvider:
        """The market as a simulation needs it, which draws for machines of the user's own too."""
        opened = self.provider
        return opened if isinstance(opened, SimulatedProvider) else self.market.open(self.spec.deadline_s)


def _sell(names: tuple[str, ...], market: object, options: dict[str, object], place: RunPlace) -> None:
    """Machines named in the space imply a market that sells them, unless `machines` is given."""
    chosen = market.machines if isinstance(market, Market) else isinstance(market, Mapping) and market.get("machines")
    if not chosen and not {THIS_MACHINE, place.place.machine} & set(names):
        options.setdefault("machines", names)


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Errors start with the call or the file they come from."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{source}: {error}", hint=error.hint) from None


def _in_real_time(spec: RunSpec, market: Market, place: RunPlace, *, slice_given: bool) -> RunSpec:
    """Machines are prepaid for seconds of real time at least, however fast the market's clock runs; to the deadline, as
    far as the budget allows, where leases cannot be renewed. And saving takes real time."""
    wind_down_s = max(spec.wind_down_s, LEAST_WIND_DOWN_S * market.speedup)
    least_s, slice_s = place.place.least_slice_s, spec.slice_s
    if not slice_given:
        slice_s = spec.deadline_s if least_s is None else max(slice_s, least_s * market.speedup)
    return msgspec.structs.replace(spec, slice_s=slice_s, wind_down_s=wind_down_s)


def _start_s(provider: PricedMarket) -> float:
    """How long a machine may take to start. What only the place itself knows (a queue) is not known before."""
    return provider.longest_start_s if isinstance(provider, SimulatedProvider) else 0.0


def _on_nodes(place: RunPlace, market: Market, given: dict[str, object]) -> Market:
    """Check that the place is there. A cluster that is the user's own is used whole, unless the user limits it."""
    nodes = place.check()
    if nodes is not None and not nodes.number and not any(node.launch for node in market.nodes):
        raise PermanentError(
            f"the cluster at {place.on} has no node with a CPU or a GPU",
            hint="add nodes, or node types with a launch command",
        )
    if market.kind == "own":
        own = on_cluster(market.nodes, place, nodes)
        given.setdefault("max_machines", sum(node.count or 1 for node in own))
        return msgspec.structs.replace(market, nodes=own)
    if nodes is None or market.kind != "free":
        return market
    given.setdefault("max_machines", nodes.number)
    return msgspec.structs.replace(market, slots=market.slots or nodes.slots, free_machine=place.place.machine)


def _named(code: object, given: Mapping[str, object], folder: Path, *, any_function: bool) -> dict[str, object]:
    """The code by its address, and the run named after its file unless it has a name."""
    if not callable(code):
        return {"command": code}
    try:
        path, _, name = address_of(code).rpartition(":")
    except SpecError:
        if not any_function:
            raise
        return {"function": "inline:function"}
    if not any_function:
        check_reached(code)
    # Relative where possible: a project that is moved together with its runs can be resumed.
    place = os.path.relpath(path, folder) if Path(path).is_relative_to(folder.resolve()) else path
    called = {} if "name" in given else {"name": Path(path).stem}
    return {"function": f"{place}:{name}", **called}


def _check_program(spec: RunSpec, folder: Path) -> None:
    """A missing command would fail once for every trial: better to report it once."""
    program = spec.code.command[0] if spec.code.command else ""
    if not program or "{" in program:
        return
    is_path = os.sep in program
    if not (os.access(folder / program, os.X_OK) if is_path else which(program)):
        raise SpecError(
            f"there is no program {program!r}{f' in {folder}' if is_path else ''}",
            hint="check its name and that it is executable, or give its path",
        )


def _check_prices(spec: RunSpec, provider: PricedMarket) -> None:
    start = provider.start
    provider.book.require((listing.offer for listing in spec.listings), start, start + spec.deadline_s)
    prices = [(provider.feed.usd_per_hour(listing.offer, start), listing.offer) for listing in spec.listings]
    usd_per_hour, offer = min(prices)
    check_affordable(spec, (offer, usd_per_hour))
