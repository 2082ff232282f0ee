"""Nodes the user really has: what they are and cost, from a study, a spec file or a file of their own.

A node type that the catalogue knows by its machine needs little more than a label and, if it is a spot machine, a
price. What the cluster itself knows (cores, how many nodes) is filled in before the run starts.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from shutil import which
from typing import Any

import msgspec

from shoestring.backends.registry import Nodes, RunPlace
from shoestring.errors import SpecError
from shoestring.kernel.types import BillingName
from shoestring.market.catalog import catalog
from shoestring.market.own import CLUSTER, NodeType
from shoestring.units import parse_duration_s, parse_usd
from shoestring.values import as_number, as_values, as_whole, did_you_mean

OWN = "own"
"""The provider of machines that are not in the catalogue."""
NODE_FILES = (".toml", ".yaml", ".yml")
_IDENTITY = ("label", "machine", "provider", "zone", "spot")
_SIZE = ("vcpus", "memory_gb", "gpus", "slots", "count")
_PRICES = ("usd_per_hour", "prices", "price_command")
_COMMANDS = ("launch", "end")
FIELDS = (*_IDENTITY, *_SIZE, *_PRICES, "list_usd_per_hour", "billing", "notice", "max_life", *_COMMANDS)
_BILLING: tuple[BillingName, ...] = ("per_second", "per_hour", "aws_spot", "gcp_preemptible", "free")
_MARK_THEM = "start each node with its label as a resource: ray start --resources='{\"spot-c2\": 1}'"
_EXAMPLE = "for example {label: spot-c2, machine: c2-standard-8, spot: true, usd_per_hour: 0.08}"


def read_nodes(plain: object, folder: str | os.PathLike[str] = "") -> tuple[NodeType, ...]:
    """`folder`: where relative paths of price files and of launchers begin."""
    if isinstance(plain, str | Mapping) or not isinstance(plain, Sequence) or not plain:
        raise SpecError(f"market: nodes={plain!r} is not a list of node types", hint=_EXAMPLE)
    nodes = tuple(
        item if isinstance(item, NodeType) else _read(item, f"market: nodes[{index}]", os.fspath(folder))
        for index, item in enumerate(plain)
    )
    seen: dict[object, str] = {}
    for node in nodes:
        if node.offer in seen:
            raise SpecError(
                f"market: the nodes {seen[node.offer]!r} and {node.label!r} are the same to the run: {node.offer}",
                hint="give one of them another machine or zone, or a label that both have",
            )
        seen[node.offer] = node.label
    return nodes


def _read(plain: object, field: str, folder: str) -> NodeType:
    if not isinstance(plain, Mapping):
        raise SpecError(f"{field}={plain!r} is not a node type", hint=_EXAMPLE)
    given: dict[str, Any] = {str(name): value for name, value in plain.items() if value is not None}
    for name in given:
        if name not in FIELDS:
            raise SpecError(f"{field}: {name} is unknown", hint=did_you_mean(name, FIELDS))
    label = given.get("label", given.get("machine"))
    machine = str(given.get("machine", label))
    if not isinstance(label, str) or not label:
        raise SpecError(f"{field} has no label, by which the cluster knows these nodes", hint=_EXAMPLE)
    provider, known = _known(machine, given.get("provider"))
    spot = given.get("spot", False)
    if not isinstance(spot, bool):
        raise SpecError(f"{field}: spot={spot!r} is neither true nor false", hint="true: these nodes may be preempted")
    price, file, command = _price(given, field, folder)
    most = _list_price(given, field, known, price, spot=spot, watched=bool(file or command))
    facts: dict[str, Any] = {} if known is None else {"memory_gb": known.memory_gb, "gpus": known.gpus}
    facts |= {name: as_number(given[name], f"{field}: {name}") for name in ("vcpus", "memory_gb") if name in given}
    facts |= {name: _at_least_one(given[name], f"{field}: {name}") for name in ("slots", "count") if name in given}
    facts |= {"gpus": as_whole(given["gpus"], f"{field}: gpus")} if "gpus" in given else {}
    facts |= _launcher(given, field, folder, known)
    return NodeType(
        label=label,
        machine=machine,
        provider=provider,
        zone=str(given.get("zone", CLUSTER)),
        spot=spot,
        usd_per_hour=most if price is None and not (file or command) else price,
        price_file=file,
        price_command=command,
        list_usd_per_hour=most,
        billing=_billing(given, field, provider, spot=spot, free=most == 0),
        notice_s=parse_duration_s(given["notice"], f"{field}: notice") if "notice" in given else None,
        max_life_s=parse_duration_s(given["max_life"], f"{field}: max_life") if "max_life" in given else None,
        **facts,
    )


def _known(machine: str, provider: object) -> tuple[str, catalog.Machine | None]:
    """The provider that sells this type, and its facts. A provider that is named must have it."""
    if provider in ("aws", "gcp"):
        return str(provider), catalog.machine(str(provider), machine)
    if provider is not None:
        return str(provider), None
    for name in ("aws", "gcp"):
        try:
            return name, catalog.machine(name, machine)
        except SpecError:
            continue
    return OWN, None


def _price(
    given: Mapping[str, Any], field: str, folder: str
) -> tuple[float | None, str | None, tuple[str, ...] | None]:
    ways = [name for name in _PRICES if name in given]
    if len(ways) > 1:
        raise SpecError(f"{field} has {' and '.join(ways)}: which is the price?", hint="keep one of them")
    price = parse_usd(given["usd_per_hour"], f"{field}: usd_per_hour") if "usd_per_hour" in given else None
    file = os.path.abspath(os.path.join(folder, str(given["prices"]))) if "prices" in given else None
    if file is not None and not os.path.exists(file):
        raise SpecError(f"{field}: there is no price file {file}", hint="give its path")
    command = None if "price_command" not in given else _words(given["price_command"], f"{field}: price_command")
    return price, file, command


def _launcher(given: Mapping[str, Any], field: str, folder: str, known: catalog.Machine | None) -> dict[str, Any]:
    """Nodes that are launched need not be there when the run starts, so the cluster cannot be asked about them."""
    named = [name for name in _COMMANDS if name in given]
    if not named:
        return {}
    if len(named) == 1:
        raise SpecError(
            f"{field} has {named[0]} and no {'end' if named == ['launch'] else 'launch'}",
            hint="give both: the command that launches a node for a lease, and the one that ends it",
        )
    if "count" not in given:
        raise SpecError(f"{field}: nothing says how many nodes may be launched", hint="give count: the most at a time")
    vcpus = given.get("vcpus", known.vcpus if known else None)
    slots = given.get("slots") or given.get("gpus", known.gpus if known else 0) or vcpus
    if slots is None:
        raise SpecError(
            f"{field}: nothing says how large a node is, and {given.get('machine', given.get('label'))!r} is not in "
            "the catalogue",
            hint="give slots (trials at a time), vcpus or gpus",
        )
    whole = max(1, int(as_number(slots, f"{field}: slots")))
    size = {"slots": whole, "vcpus": as_number(whole if vcpus is None else vcpus, f"{field}: vcpus")}
    return size | {name: _program(given[name], f"{field}: {name}", folder) for name in _COMMANDS}


def _words(plain: object, field: str) -> tuple[str, ...]:
    try:
        words = shlex.split(plain) if isinstance(plain, str) else list(map(str, as_values(plain, field)))
    except ValueError:  # a quotation mark without its pair
        words = []
    if not words:
        name = field.split()[-1]
        raise SpecError(f"{field}={plain!r} is not a command", hint=f"for example {name}: ./{name}.sh c2")
    return tuple(words)


def _program(plain: object, field: str, folder: str) -> tuple[str, ...]:
    """A command. A path in it is absolute, for a controller may be restarted in another folder."""
    program, *words = _words(plain, field)
    path = os.path.abspath(os.path.join(folder, program)) if os.sep in program else which(program)
    if path is None or not os.access(path, os.X_OK) or os.path.isdir(path):
        raise SpecError(
            f"{field}: there is no program {program if path is None else path}",
            hint="check its name and that it is executable (chmod +x)",
        )
    return path, *words


def _list_price(
    given: Mapping[str, Any],
    field: str,
    known: catalog.Machine | None,
    price: float | None,
    *,
    spot: bool,
    watched: bool,
) -> float:
    """The most an hour can cost: the budget reserves it."""
    if not spot and watched:
        raise SpecError(f"{field}: the price of nodes that are not spot does not change", hint="give usd_per_hour")
    if not spot and price is not None:
        return price
    if "list_usd_per_hour" in given:
        most = parse_usd(given["list_usd_per_hour"], f"{field}: list_usd_per_hour")
    elif known is not None:
        most = known.on_demand_usd_per_hour
    elif price is not None:
        return price
    else:
        raise SpecError(
            f"{field}: nothing says what these nodes cost, and {given.get('machine', given.get('label'))!r} is not in "
            "the catalogue",
            hint="give usd_per_hour (0 is free of charge); with prices or price_command also list_usd_per_hour, "
            "the most an hour can cost",
        )
    if spot and price is None and not watched:
        raise SpecError(f"{field}: spot nodes need a price", hint="give usd_per_hour, prices or price_command")
    if price is not None and price > most:
        raise SpecError(
            f"{field}: usd_per_hour={price:g} is more than the list price of {most:g}", hint="raise list_usd_per_hour"
        )
    return most


def _billing(given: Mapping[str, Any], field: str, provider: str, *, spot: bool, free: bool) -> BillingName:
    billing = given.get("billing")
    if billing is None:
        usual = catalog.SPOT_BILLING.get(provider, "per_second") if spot else "per_second"
        return "free" if free else usual
    if billing not in _BILLING:
        raise SpecError(f"{field}: billing={billing!r} is unknown", hint=did_you_mean(billing, _BILLING))
    return _BILLING[_BILLING.index(billing)]


def _at_least_one(plain: object, field: str) -> int:
    number = as_whole(plain, field)
    if number < 1:
        raise SpecError(f"{field}={plain!r} is too few", hint="it must be 1 or more")
    return number


def on_cluster(nodes: Iterable[NodeType], place: RunPlace, cluster: Nodes | None) -> tuple[NodeType, ...]:
    """With what the cluster knows of them. SpecError if it has no nodes of a label, and none can be launched."""
    nodes = tuple(nodes)
    launched = [node for node in nodes if node.launch is not None]
    if launched and not (cluster and cluster.can_launch):
        raise SpecError(
            f"market: nodes {launched[0].label!r} have a launch command, and no nodes can be added to {place.on}",
            hint="leave launch and end out, or run on ray:ADDRESS",
        )
    if cluster is None or not (cluster.labels or launched):
        if len(nodes) > 1:
            raise SpecError(
                f"market: {len(nodes)} node types, and nodes of {place.on} cannot be told apart",
                hint=_MARK_THEM if cluster and cluster.can_launch else "describe one",
            )
        size = cluster or Nodes(1, os.cpu_count() or 1)
        return tuple(msgspec.structs.replace(_filled(node, size), is_any=True) for node in nodes)
    for node in nodes:
        if node.label not in cluster.labels and node.launch is None:
            raise SpecError(
                f"market: {place.on} has no nodes with the label {node.label!r}",
                hint=did_you_mean(node.label, cluster.labels) if cluster.labels else _MARK_THEM,
            )
    return tuple(node if node.launch else _filled(node, cluster.labels[node.label]) for node in nodes)


def _filled(node: NodeType, size: Nodes) -> NodeType:
    if node.count is not None and node.count > size.number:
        raise SpecError(f"market: there are {size.number} nodes {node.label!r}, not {node.count}", hint="lower count")
    return msgspec.structs.replace(
        node,
        slots=node.slots or size.slots,
        vcpus=node.vcpus or float(size.slots),
        count=node.count or size.number,
    )
