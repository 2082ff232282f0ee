"""The catalogue: machine types with their properties, and the listings a run may lease from.

Prices are list prices of one American region per provider (us-east-1, us-central1). They are constants, not
queried: a catalogue that changed during a run would make it impossible to repeat.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoestring.errors import SpecError
from shoestring.kernel.types import LOCAL, THIS_MACHINE, BillingName, Fact, Listing, Offer
from shoestring.market.catalog import aws as aws_machines
from shoestring.market.catalog import gcp as gcp_machines

NOTICE_S = {"aws": 120.0, "gcp": 30.0, "azure": 30.0, LOCAL: 0.0}
"""How long before a revocation each provider warns."""

LEGACY_PREEMPTIBLE_LIFE_S = 24 * 3600.0

SPOT_BILLING: dict[str, BillingName] = {"aws": "aws_spot", "gcp": "gcp_preemptible"}


class Machine(Fact, frozen=True, kw_only=True):
    """One machine type of one provider."""

    provider: str
    name: str
    vcpus: float
    memory_gb: float
    gpus: int = 0
    gpu: str = ""
    on_demand_usd_per_hour: float
    zones: tuple[str, ...]


def _aws() -> Iterable[Machine]:
    zones = aws_machines.REGION_ZONES
    for family, (usd_per_vcpu, gb_per_vcpu, sizes) in aws_machines.FAMILIES.items():
        for size, vcpus in sizes.items():
            yield _sized("aws", f"{family}.{size}", vcpus, gb_per_vcpu, usd_per_vcpu, zones)
    yield from _single("aws", aws_machines.SINGLE, zones)


def _gcp() -> Iterable[Machine]:
    zones = gcp_machines.REGION_ZONES
    for family, (usd_per_vcpu, gb_per_vcpu, sizes) in gcp_machines.FAMILIES.items():
        for vcpus in sizes:
            yield _sized("gcp", f"{family}-{vcpus}", vcpus, gb_per_vcpu, usd_per_vcpu, zones)
    yield from _single("gcp", gcp_machines.SINGLE, zones)


def _sized(
    provider: str, name: str, vcpus: int, gb_per_vcpu: float, usd_per_vcpu: float, zones: tuple[str, ...]
) -> Machine:
    return Machine(
        provider=provider,
        name=name,
        vcpus=vcpus,
        memory_gb=vcpus * gb_per_vcpu,
        on_demand_usd_per_hour=round(vcpus * usd_per_vcpu, 5),
        zones=zones,
    )


def _single(
    provider: str, rows: Iterable[tuple[str, float, float, int, str, float]], zones: tuple[str, ...]
) -> Iterable[Machine]:
    for name, vcpus, memory_gb, gpus, gpu, usd_per_hour in rows:
        yield Machine(
            provider=provider,
            name=name,
            vcpus=vcpus,
            memory_gb=memory_gb,
            gpus=gpus,
            gpu=gpu,
            on_demand_usd_per_hour=usd_per_hour,
            zones=zones,
        )


_CATALOG: dict[str, dict[str, Machine]] = {
    "aws": {machine.name: machine for machine in _aws()},
    "gcp": {machine.name: machine for machine in _gcp()},
}


def _of(provider: str) -> dict[str, Machine]:
    try:
        return _CATALOG[provider]
    except KeyError:
        raise SpecError(
            f"provider={provider!r} is not in the catalogue", hint=f"known: {', '.join(_CATALOG)}"
        ) from None


def machine(provider: str, name: str) -> Machine:
    """The facts about one machine type."""
    known = _of(provider)
    if name not in known:
        from difflib import get_close_matches

        close = get_close_matches(name, known, n=4, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else f"for example {', '.join(list(known)[:3])}"
        raise SpecError(f"machine={name!r} is not in the catalogue of {provider}", hint=hint)
    return known[name]


def machines(
    provider: str,
    *,
    max_vcpus: float | None = None,
    min_vcpus: float | None = None,
    gpus: int | None = None,
    names: Iterable[str] | None = None,
) -> tuple[Machine, ...]:
    """All machine types of a provider that fit, cheapest first. `gpus=0` means none, `gpus=1` exactly one."""
    candidates = _of(provider).values() if names is None else [machine(provider, name) for name in names]
    fitting = [
        found
        for found in candidates
        if (max_vcpus is None or found.vcpus <= max_vcpus)
        and (min_vcpus is None or found.vcpus >= min_vcpus)
        and (gpus is None or found.gpus == gpus)
    ]
    if not fitting:
        raise SpecError(
            f"no machine of {provider} has min_vcpus={min_vcpus}, max_vcpus={max_vcpus}, gpus={gpus}"
            + ("" if names is None else " among the names given"),
            hint="widen the limits or name the machine types",
        )
    return tuple(sorted(fitting, key=lambda found: (found.on_demand_usd_per_hour, found.name)))


def listing(
    machine: Machine,
    zone: str,
    *,
    spot: bool,
    slots: int | None = None,
    billing: BillingName | None = None,
    legacy_preemptible: bool = False,
) -> Listing:
    """A machine type for sale in one zone, under its provider's billing rule.

    Slots are the GPUs by default, or one: most CPU training uses all cores it finds. `billing="per_hour"` replays the
    auction years, when Amazon charged by the hour. `legacy_preemptible` is Google's older product, which ends after 24
    hours; today's Spot VMs have no such limit.
    """
    if zone not in machine.zones:
        raise SpecError(f"zone={zone!r} does not sell {machine.name}", hint=f"zones: {', '.join(machine.zones)}")
    if slots is not None and slots < 1:
        raise SpecError(f"slots={slots!r} of {machine.name} must be 1 or more")
    if legacy_preemptible and not (machine.provider == "gcp" and spot):
        raise SpecError(
            f"legacy_preemptible=True makes no sense for {machine.name} ({machine.provider}, spot={spot})",
            hint="only Google's spot machines have a legacy form",
        )
    by_default: BillingName = SPOT_BILLING[machine.provider] if spot else "per_second"
    return Listing(
        offer=Offer(provider=machine.provider, zone=zone, machine=machine.name, spot=spot),
        vcpus=machine.vcpus,
        memory_gb=machine.memory_gb,
        gpus=machine.gpus,
        slots=max(1, machine.gpus) if slots is None else slots,
        on_demand_usd_per_hour=machine.on_demand_usd_per_hour,
        billing=billing or by_default,
        notice_s=NOTICE_S[machine.provider],
        max_life_s=LEGACY_PREEMPTIBLE_LIFE_S if legacy_preemptible else None,
    )


def free_listing(slots: int = 1, machine: str = THIS_MACHINE) -> Listing:
    """A machine that is free of charge and never preempted."""
    if slots < 1:
        raise SpecError(f"slots={slots!r} must be 1 or more")
    return Listing(
        offer=Offer(provider=LOCAL, zone="here", machine=machine, spot=False),
        vcpus=slots,
        memory_gb=0.0,
        slots=slots,
        on_demand_usd_per_hour=0.0,
        billing="free",
        notice_s=NOTICE_S[LOCAL],
    )


DEFAULT_MACHINES = ("t3.medium", "c6i.large", "c6i.xlarge", "m6i.large", "m6i.xlarge", "m6i.2xlarge", "r5.large")
DEFAULT_ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


PREEMPTIBLE_MACHINES = ("n1-highcpu-2", "n1-highcpu-4", "n1-highcpu-8", "n1-highcpu-16", "n1-highcpu-32")
"""The machine types of the SciSpot paper."""


def default_listings() -> tuple[Listing, ...]:
    """The default of a run that names no machines: small Amazon CPU machines in three zones, spot and on-demand."""
    return tuple(
        listing(machine("aws", name), zone, spot=spot)
        for name in DEFAULT_MACHINES
        for zone in DEFAULT_ZONES
        for spot in (True, False)
    )
