"""The smallest study, of those simpler than a given one, that shows the same finding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from shoestring.errors import SpecError
from tests.fuzz.check import Finding, check
from tests.fuzz.draft import Draft


def shrunk(drawn: Draft, what: str, patience_s: float) -> tuple[Draft, Finding]:
    """Simplify as long as something can be left out or halved and the finding stays: for `patience_s` of CPU."""
    began = time.process_time()
    finding = _finding(drawn, what) or Finding(what, "not seen again: it depends on the computer's speed")
    simpler = True
    while simpler:
        simpler = False
        for candidate in _simpler(drawn):
            if time.process_time() - began > patience_s:
                return drawn, finding
            found = _finding(candidate, what)
            if found is not None:
                drawn, finding, simpler = candidate, found, True
                break
    return drawn, finding


def _finding(drawn: Draft, what: str) -> Finding | None:
    try:
        return next((finding for finding in check(drawn) if finding.what == what), None)
    except SpecError:
        return None


def _simpler(drawn: Draft) -> Iterator[Draft]:
    yield from _without_offers(drawn)
    for name, quiet in _QUIET.items():
        if getattr(drawn.world, name) != quiet:
            yield replace(drawn, world=replace(drawn.world, **{name: quiet}))
    fields = drawn.fields
    for name in _OPTIONAL:
        if name in fields:
            yield replace(drawn, fields={key: value for key, value in fields.items() if key != name})
    options = fields["options"]
    for name in options:
        yield _with(drawn, "options", {key: value for key, value in options.items() if key != name})
    if "space" in fields and len(fields["space"]) > 1:
        for name in list(fields["space"])[1:]:
            yield _with(drawn, "space", {key: value for key, value in fields["space"].items() if key != name})
    for name, smaller in _SMALLER.items():
        if name in fields and (less := smaller(fields[name])) != fields[name]:
            yield _with(drawn, name, less)


def _without_offers(drawn: Draft) -> Iterator[Draft]:
    for left_out in drawn.listings if len(drawn.listings) > 1 else ():
        traces = tuple(trace for trace in drawn.world.traces if trace[0] != left_out.offer)
        listings = tuple(listing for listing in drawn.listings if listing != left_out)
        yield replace(drawn, listings=listings, world=replace(drawn.world, traces=traces))


def _with(drawn: Draft, name: str, value: Any) -> Draft:
    return replace(drawn, fields={**drawn.fields, name: value})


_QUIET: dict[str, Any] = {
    "revoked_per_hour": 0.0,
    "shocks_per_hour": 0.0,
    "denial_share": 0.0,
    "trouble_share": 0.0,
    "fixed_s": 0.0,
    "spread": 0.0,
    "provision_s": 40.0,
    "start_s": 20.0,
    "checkpoint_gb": 0.05,
}
_OPTIONAL = ("slots", "time_limit", "wind_down_s", "slice_s", "fractions")
_SMALLER: dict[str, Callable[[Any], Any]] = {
    "trials": lambda trials: max(1, trials // 2),
    "given": lambda given: given[: max(1, len(given) // 2)],
    "max_steps": lambda steps: max(1, steps // 2),
    "max_machines": lambda machines: max(1, machines // 2),
    "max_failures": lambda _: 0,
    "seed": lambda _: 0,
}
