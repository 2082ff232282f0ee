"""A resolved run request: the spec, its market, where its code runs and where it is stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any, Self

import msgspec

from shoestring import recipes
from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import RAY_NODE, SLURM_NODE, THIS_MACHINE
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.policies.search.run_to_completion import Grid
from shoestring.recipes.options.model_files import LIFETIMES_FILE, MODEL_FILE, refuse_hindsight
from shoestring.recipes.options.parse import with_current_values
from shoestring.specs.build import check_affordable, make_spec
from shoestring.specs.job_table import with_table
from shoestring.specs.machines import machine_names, resolve_machines
from shoestring.specs.market import Market, make_market
from shoestring.values import did_you_mean
from shoestring.worker.loading import address_of

PLACES = ("local", "inline", "ray", "ray:ADDRESS", "slurm", "slurm:PARTITION")
_LEAST_SLICE_REAL_S = {"local": 4.0, "ray": 20.0, "slurm": 120.0}
"""A controller that has died must be able to restart before its machines end, which takes longer on Ray. On Slurm a
lease that is still pending by then is denied, and resuming a node takes minutes."""
MARKET_FIELDS = ("machines", "zones", "provider", "speedup")
"""Accepted at the top level of a call for convenience; they belong to the market."""


@dataclass(frozen=True)
class RunRequest:
    spec: RunSpec
    market: Market
    provider: SimulatedProvider
    on: str
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
        on = _place(given.pop("on", "local"))
        store, fresh = given.pop("store", None), bool(given.pop("fresh", False))
        simulation = given.pop("simulate", {})
        market_options = {field: given.pop(field) for field in MARKET_FIELDS if field in given}
        requested_market = given.pop("market", None if runs_code else "modern")
        if names := machine_names(given.get("space", {})):
            _sell(names, requested_market, market_options)
        market = make_market(requested_market, **market_options)
        if runs_code and on.startswith("ray"):
            market = _on_ray(on, market, given)
        if runs_code and on.startswith("slurm"):
            market = _on_slurm(on, market, given)
        if code is not None:
            given |= _named(code, given, folder, on if runs_code else "inline")
        if kind == "bag":
            given.setdefault("recipe", "given")
        if market.kind == "free":
            given.setdefault("max_machines", 1)  # this one; its slots are its cores
        spec = make_spec({"kind": kind, **given}, source=source, needs_code=runs_code)
        spec = msgspec.structs.replace(spec, options=with_current_values(spec.options))
        for file in (MODEL_FILE, LIFETIMES_FILE):
            spec = file.pinned(spec, folder)
        search = recipes.search_of(spec)  # an unknown recipe or option is refused now rather than mid-run
        if runs_code:
            _check_program(spec, folder)
        if "slice_s" not in given and runs_code:
            spec = msgspec.structs.replace(spec, slice_s=_slice_s(spec, market, on))
        if not market.seed:
            market = msgspec.structs.replace(market, seed=spec.seed)
        provider = market.open(spec.deadline_s)
        spec = msgspec.structs.replace(spec, listings=market.listings(provider))
        _check_prices(spec, provider)
        spec = _resolve_machines(spec, source, trials_given="trials" in given)
        if isinstance(search, Grid):  # the grid determines the number of trials
            spec = msgspec.structs.replace(spec, trials=len(spec.given) + spec.space.grid_size(search.points))
        recipes.build(spec)  # some recipes need the listings to see that budget or deadline do not suffice
        if market.kind == "prices":
            refuse_hindsight(spec, provider.start)
        return cls(
            spec=spec,
            market=market,
            provider=provider,
            on=on,
            function=code if callable(code) else None,
            folder=folder,
            store=store if isinstance(store, str | Path) else None,
            fresh=fresh,
            simulation=simulation if isinstance(simulation, Mapping) else {},
        )


def _sell(names: tuple[str, ...], market: object, options: dict[str, object]) -> None:
    """Machines named in the space imply a market that sells them, unless `machines` is given."""
    chosen = market.machines if isinstance(market, Market) else isinstance(market, Mapping) and market.get("machines")
    if not chosen and not {THIS_MACHINE, RAY_NODE, SLURM_NODE} & set(names):
        options.setdefault("machines", names)


def _resolve_machines(spec: RunSpec, source: str, *, trials_given: bool) -> RunSpec:
    try:
        return resolve_machines(spec, trials_given=trials_given)
    except SpecError as error:
        raise SpecError(f"{source}: {error}", hint=error.hint) from None


def _slice_s(spec: RunSpec, market: Market, on: str) -> float:
    """How far ahead machines are prepaid: at least seconds of real time, however fast the market's clock runs. Inline,
    a lease cannot be renewed while user code runs, so it is prepaid to the deadline, as far as the budget allows."""
    if on == "inline":
        return spec.deadline_s
    return max(spec.slice_s, _LEAST_SLICE_REAL_S[on.partition(":")[0]] * market.speedup)


def _place(on: object) -> str:
    if isinstance(on, str) and on.startswith("ray:"):
        from shoestring.backends.ray.check import ray_address

        ray_address(on)
        return on
    if isinstance(on, str) and on.startswith("slurm:"):
        from shoestring.backends.slurm.check import slurm_partition

        slurm_partition(on)
        return on
    if on not in PLACES:
        raise SpecError(f"on={on!r} is unknown", hint=did_you_mean(on, PLACES))
    return str(on)


def _on_ray(on: str, market: Market, given: dict[str, object]) -> Market:
    """Check that Ray is available. A cluster that is free of charge is used whole, unless the user limits it."""
    from shoestring.backends.ray.check import look_around

    cluster = look_around(on)
    if cluster is None or market.kind != "free":
        return market
    given.setdefault("max_machines", cluster.nodes)
    return msgspec.structs.replace(market, slots=market.slots or cluster.slots, free_machine=RAY_NODE)


def _on_slurm(on: str, market: Market, given: dict[str, object]) -> Market:
    """Check that Slurm is available. Nodes that are free of charge are all used, unless the user limits them."""
    from shoestring.backends.slurm.check import look_around

    cluster = look_around(on)
    if market.kind != "free":
        return market
    given.setdefault("max_machines", cluster.nodes)
    return msgspec.structs.replace(market, slots=market.slots or cluster.slots, free_machine=SLURM_NODE)


def _named(code: object, given: Mapping[str, object], folder: Path, on: str) -> dict[str, object]:
    """The code by its address, and the run named after its file unless it has a name."""
    if not callable(code):
        return {"command": code}
    try:
        path, _, name = address_of(code).rpartition(":")
    except SpecError:
        if on != "inline":
            raise
        return {"function": "inline:function"}
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


def _check_prices(spec: RunSpec, provider: SimulatedProvider) -> None:
    start = provider.start
    provider.book.require((listing.offer for listing in spec.listings), start, start + spec.deadline_s)
    prices = [(provider.feed.usd_per_hour(listing.offer, start), listing.offer) for listing in spec.listings]
    usd_per_hour, offer = min(prices)
    check_affordable(spec, (offer, usd_per_hour))
