"""All that one call asks for, settled: the spec, its market, where its code runs and where it is recorded."""

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
from shoestring.specs.build import check_affordable, make_spec
from shoestring.specs.job_table import with_table
from shoestring.specs.machines import machine_names, settled
from shoestring.specs.market import Market, make_market
from shoestring.values import did_you_mean
from shoestring.worker.loading import address_of

PLACES = ("local", "inline", "ray", "ray:ADDRESS", "slurm", "slurm:PARTITION")
_LEAST_SLICE_REAL_S = {"local": 4.0, "ray": 20.0, "slurm": 120.0}
"""A controller that has died must be able to come back before its machines end, and on Ray that takes longer. On Slurm
a lease is denied that has not come by then, and nodes that are resumed take their time."""
MARKET_FIELDS = ("machines", "zones", "provider", "speedup")
"""Said at the top level of a call for convenience; they belong to the market."""


@dataclass(frozen=True)
class RunRequest:
    spec: RunSpec
    market: Market
    provider: SimulatedProvider
    on: str
    function: Callable[..., object] | None
    """The function itself, for `inline`; other places find it again by its address in the spec."""
    folder: Path
    """Where user code runs."""
    store: str | Path | None
    fresh: bool
    simulation: Mapping[str, object]
    """What a file says about simulating it: seconds_per_step, checkpoint_gb, like."""

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
        """Read the user's words. Without `runs_code` (a simulation) nothing is asked of the code."""
        words = {field: value for field, value in fields.items() if value is not None}
        if "listings" in words:
            raise SpecError("listings cannot be given here", hint="choose with machines=, zones= and market=")
        folder = folder or Path.cwd()
        words = with_table(words, folder)
        on = _place(words.pop("on", "local"))
        store, fresh = words.pop("store", None), bool(words.pop("fresh", False))
        simulation = words.pop("simulate", {})
        market_words = {field: words.pop(field) for field in MARKET_FIELDS if field in words}
        asked_market = words.pop("market", None if runs_code else "modern")
        if names := machine_names(words.get("space", {})):
            _sell(names, asked_market, market_words)
        market = make_market(asked_market, **market_words)
        if runs_code and on.startswith("ray"):
            market = _on_ray(on, market, words)
        if runs_code and on.startswith("slurm"):
            market = _on_slurm(on, market, words)
        if code is not None:
            words |= _named(code, words, folder, on if runs_code else "inline")
        if kind == "bag":
            words.setdefault("recipe", "given")
        if market.kind == "free":
            words.setdefault("max_machines", 1)  # this one; its slots are its cores
        spec = make_spec({"kind": kind, **words}, source=source, needs_code=runs_code)
        for file in (MODEL_FILE, LIFETIMES_FILE):
            spec = file.pinned(spec, folder)
        search = recipes.search_of(spec)  # an unknown recipe or option is better refused now than in mid-run
        if runs_code:
            _check_program(spec, folder)
        if "slice_s" not in words and runs_code:
            spec = msgspec.structs.replace(spec, slice_s=_slice_s(spec, market, on))
        if not market.seed:
            market = msgspec.structs.replace(market, seed=spec.seed)
        provider = market.open(spec.deadline_s)
        spec = msgspec.structs.replace(spec, listings=market.listings(provider))
        _check_payable(spec, provider)
        spec = _settled(spec, source, trials_given="trials" in words)
        if isinstance(search, Grid):  # the grid says how many trials there are
            spec = msgspec.structs.replace(spec, trials=len(spec.given) + spec.space.grid_size(search.points))
        recipes.build(spec)  # some can tell only now, from the machines on offer, that budget or deadline do not do
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


def _sell(names: tuple[str, ...], market: object, words: dict[str, object]) -> None:
    """Who names machines in the space asks for a market that sells them, unless machines are said for themselves."""
    said = market.machines if isinstance(market, Market) else isinstance(market, Mapping) and market.get("machines")
    if not said and not {THIS_MACHINE, RAY_NODE, SLURM_NODE} & set(names):
        words.setdefault("machines", names)


def _settled(spec: RunSpec, source: str, *, trials_given: bool) -> RunSpec:
    try:
        return settled(spec, trials_given=trials_given)
    except SpecError as error:
        raise SpecError(f"{source}: {error}", hint=error.hint) from None


def _slice_s(spec: RunSpec, market: Market, on: str) -> float:
    """How far ahead machines are prepaid: at least seconds of real time, however fast the market's clock goes. Inline
    nobody can renew a lease while user code runs, so it is paid for whole, as far as the budget reaches."""
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


def _on_ray(on: str, market: Market, words: dict[str, object]) -> Market:
    """Is Ray there? A cluster that costs nothing is used whole, unless the user says how much of it."""
    from shoestring.backends.ray.check import look_around

    cluster = look_around(on)
    if cluster is None or market.kind != "free":
        return market
    words.setdefault("max_machines", cluster.nodes)
    return msgspec.structs.replace(market, slots=market.slots or cluster.slots, free_machine=RAY_NODE)


def _on_slurm(on: str, market: Market, words: dict[str, object]) -> Market:
    """Is Slurm there? Nodes that cost nothing are used whole, unless the user says how many."""
    from shoestring.backends.slurm.check import look_around

    cluster = look_around(on)
    if market.kind != "free":
        return market
    words.setdefault("max_machines", cluster.nodes)
    return msgspec.structs.replace(market, slots=market.slots or cluster.slots, free_machine=SLURM_NODE)


def _named(code: object, words: Mapping[str, object], folder: Path, on: str) -> dict[str, object]:
    """The code by its address, and the run by its file unless it has a name."""
    if not callable(code):
        return {"command": code}
    try:
        path, _, name = address_of(code).rpartition(":")
    except SpecError:
        if on != "inline":
            raise
        return {"function": "inline:function"}
    # Relative where possible: a project that is moved, runs and all, goes on where it was.
    place = os.path.relpath(path, folder) if Path(path).is_relative_to(folder.resolve()) else path
    called = {} if "name" in words else {"name": Path(path).stem}
    return {"function": f"{place}:{name}", **called}


def _check_program(spec: RunSpec, folder: Path) -> None:
    """A command that is not there would fail once for every trial: better to say so once."""
    program = spec.code.command[0] if spec.code.command else ""
    if not program or "{" in program:
        return
    here = os.sep in program
    if not (os.access(folder / program, os.X_OK) if here else which(program)):
        raise SpecError(
            f"there is no program {program!r}{f' in {folder}' if here else ''}",
            hint="check its name and that it may be executed, or give the path to it",
        )


def _check_payable(spec: RunSpec, provider: SimulatedProvider) -> None:
    start = provider.start
    provider.book.require((listing.offer for listing in spec.listings), start, start + spec.deadline_s)
    prices = [(provider.feed.usd_per_hour(listing.offer, start), listing.offer) for listing in spec.listings]
    usd_per_hour, offer = min(prices)
    check_affordable(spec, (offer, usd_per_hour))
