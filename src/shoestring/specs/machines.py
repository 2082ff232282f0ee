"""A search space with machines, resolved against the offers of the run's market: open choices are filled in, and names
that are not for sale are refused.

The rule: every combination of type, zone and kind that the space can name is for sale, large enough and affordable. So
no trial is ever sampled that could not run, and no search has to check for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import cast

import msgspec

from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing
from shoestring.market.billing import new_lease_usd
from shoestring.policies.placement.named_machines import Wanted, is_named
from shoestring.policies.placement.renting.least_time import LEAST_CHARGED_S
from shoestring.space.parameters import WORDS_OF, Choice, Constant, Int, Role
from shoestring.space.space import Space, from_plain
from shoestring.specs.build import default_trials
from shoestring.units import show_usd
from shoestring.values import Value, did_you_mean

_KNOWN_BY: tuple[Role, ...] = ("machine", "zone", "spot")
"""Fields of an offer, in the order in which they are filled in."""


def machine_names(space: object) -> tuple[str, ...]:
    """The instance types that a space in plain form names. An invalid space names none: `make_spec` refuses it."""
    try:
        read = from_plain(space)
    except SpecError:
        return ()
    types = read.params.get(read.roles.get("machine", ""))
    return tuple(map(str, types.options)) if isinstance(types, Choice) else ()


def resolve_machines(spec: RunSpec, *, trials_given: bool) -> RunSpec:
    """The spec with its space resolved against its listings."""
    if not spec.space.roles:
        return spec
    for role in _KNOWN_BY:
        _check_known(spec.space, role, spec.listings)
    usable = [listing for listing in spec.listings if listing.slots >= spec.slots]
    space = _filled(spec.space, usable)
    for config in spec.given:
        space.check(config)
    _check_for_sale(space, spec, usable)
    _check_affordable(space, spec, usable, _most_machines(space, spec))
    trials = spec.trials if trials_given else default_trials(space, spec.given, spec.fractions)
    return msgspec.structs.replace(spec, space=space, trials=trials)


def _check_known(space: Space, role: Role, listings: Iterable[Listing]) -> None:
    """A name without offers is more likely misspelt than sold out."""
    sold = _sold(role, listings)
    for option in _options(space, role):
        if option not in sold:
            raise SpecError(
                f"space.{space.roles[role]}: nothing is for sale {_phrase(role, option)} in this run",
                hint=f"only {_phrase(role, sold[0])}" if role == "spot" else did_you_mean(option, map(str, sold)),
            )


def _filled(space: Space, usable: list[Listing]) -> Space:
    """With open choices filled in: all options that are for sale together with each option of the others."""
    for role in _KNOWN_BY:
        name = space.roles.get(role)
        if name is None or _options(space, role):
            continue
        fitting = tuple(value for value in _sold(role, usable) if not _unavailable(space, usable, {role: [value]}))
        if not fitting:
            raise SpecError(
                f"space.{name}: nothing for {WORDS_OF[role]}() is for sale together with all the rest of the space",
                hint="name fewer machines, zones or kinds to choose from",
            )
        filled = msgspec.structs.replace(cast(Choice, space.params[name]), options=fitting)
        space = Space(params={**space.params, name: filled})
    return space


def _check_for_sale(space: Space, spec: RunSpec, usable: list[Listing]) -> None:
    missing = _unavailable(space, usable)
    if not missing:
        return
    wanted = missing[0]
    what = "".join(f" {_phrase(role, value)}" for role, value in wanted.items())
    small = any(is_named(listing.offer, wanted) for listing in spec.listings)
    raise SpecError(
        f"space: nothing is for sale{what}{f' with the {spec.slots} slots that a worker takes' if small else ''}",
        hint="every combination in the space must be for sale: name fewer machines, or leave type, zone or spot open",
    )


def _most_machines(space: Space, spec: RunSpec) -> int:
    name = space.roles.get("count", "")
    match space.params.get(name):
        case Int(high=most):
            pass
        case Constant(value=int(most)):
            pass
        case _:
            return 1
    if most > spec.max_machines:
        raise SpecError(
            f"space.{name}: a trial may have {most} machines, and max_machines={spec.max_machines}",
            hint=f"raise max_machines to {most}, or let trials have fewer machines",
        )
    return most


def _check_affordable(space: Space, spec: RunSpec, usable: list[Listing], most: int) -> None:
    """A trial that the whole budget cannot start would never run."""
    for wanted in _combinations(space):
        named = (listing for listing in usable if is_named(listing.offer, wanted))
        least, offer = min((most * _first_minute_usd(listing), listing.offer) for listing in named)
        if least > spec.budget_usd:
            raise SpecError(
                f"budget {show_usd(spec.budget_usd)} cannot pay the first minute of {most} x {offer}, "
                f"which the space can name: it may cost {show_usd(least)}",
                hint="raise --budget, or leave such machines out of the space",
            )


def _first_minute_usd(listing: Listing) -> float:
    return new_lease_usd(listing.billing, LEAST_CHARGED_S, listing.ceiling_usd_per_hour(None))


def _options(space: Space, role: Role) -> tuple[Value, ...]:
    param = space.params.get(space.roles.get(role, ""))
    return param.options if isinstance(param, Choice) else ()


def _combinations(space: Space, instead: Mapping[Role, list[Value]] = MappingProxyType({})) -> Iterator[Wanted]:
    """All combinations that configurations can name; an unset role is left open. `instead`: options of a role."""
    values: dict[Role, list[Value]] = {}
    for role in _KNOWN_BY:
        options: list[Value] = [*(instead.get(role) or _options(space, role))]
        if not options or space.params[space.roles[role]].when:
            options.append(None)
        values[role] = options
    for combination in product(*values.values()):
        yield {role: value for role, value in zip(values, combination, strict=True) if value is not None}


def _unavailable(
    space: Space, listings: Iterable[Listing], instead: Mapping[Role, list[Value]] = MappingProxyType({})
) -> list[Wanted]:
    """Combinations that can be named and are not for sale."""
    offers = [listing.offer for listing in listings]
    return [wanted for wanted in _combinations(space, instead) if not any(is_named(offer, wanted) for offer in offers)]


def _sold(role: Role, listings: Iterable[Listing]) -> list[Value]:
    return list(dict.fromkeys(getattr(listing.offer, role) for listing in listings))


def _phrase(role: Role, value: Value) -> str:
    match role:
        case "zone":
            return f"in {value}"
        case "spot":
            return "on spot" if value else "on demand"
        case _:
            return f"as {value}"
