"""`on="ray"`: Ray nodes started on this machine; `on="ray:ADDRESS"`: the nodes of a cluster that exists."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from shoestring.backends.registry import Nodes
from shoestring.errors import MissingExtra, SpecError
from shoestring.kernel.types import RAY_NODE

if TYPE_CHECKING:
    from shoestring.backends.ray.messages import Node
    from shoestring.backends.site import Site
    from shoestring.market.priced import PricedMarket
    from shoestring.world.protocol import Backend

_ADDRESS = re.compile(r"auto|[^\s/:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")


class RayPlace:
    forms = ("ray", "ray:ADDRESS")
    machine = RAY_NODE
    least_slice_s: float | None = 20.0
    """A controller takes longer to restart on Ray."""
    in_caller = False

    def parse(self, address: str | None) -> None:
        if address is not None and not _ADDRESS.fullmatch(address):
            raise SpecError(
                f"on='ray:{address}' names no Ray cluster",
                hint="write it as ray:10.0.0.1:6379, the address `ray start --head` printed (not that of a Ray "
                "client), ray:auto for a cluster this machine belongs to, or ray to start nodes on this machine",
            )

    def check(self, address: str | None) -> Nodes | None:
        from shoestring.backends.ray.joined_nodes import is_open, labels_of
        from shoestring.backends.ray.link import look_at

        _require_ray()
        if address is None:
            return None
        nodes = [node for node in look_at(address, Path(os.devnull)).nodes if node.alive and is_open(node)]
        labels = {
            label: [node for node in nodes if label in node.resources] for each in nodes for label in labels_of(each)
        }
        sizes = {label: _size(labelled) for label, labelled in labels.items()}
        return _size(nodes)._replace(labels=sizes, can_launch=True)

    def survives_power_loss(self, address: str | None) -> bool:
        return address is not None

    def open(self, address: str | None, site: Site, market: PricedMarket) -> Backend:
        from shoestring.backends.on_market import on_market
        from shoestring.backends.processes import ProcessBackend
        from shoestring.backends.ray.joined_nodes import JoinedNodes
        from shoestring.backends.ray.nodes import NodeSource, RayNodes
        from shoestring.backends.ray.started_nodes import StartedNodes
        from shoestring.backends.ray.worker import RayWorkers
        from shoestring.market.own import OwnMarket

        nodes: NodeSource
        if address is None:
            nodes = StartedNodes(site.run_dir, deadman_s=site.deadman_s)
        else:
            types = market.nodes if isinstance(market, OwnMarket) else ()
            nodes = JoinedNodes(site.run_dir, address, market.labels, types)
        machines = on_market(RayNodes(nodes, site.clock), market, site)
        return ProcessBackend(site, machines, RayWorkers(nodes), market)


def _size(nodes: Sequence[Node]) -> Nodes:
    from shoestring.backends.ray.joined_nodes import slots_of

    return Nodes(len(nodes), min((slots_of(node) for node in nodes), default=1))


def _require_ray() -> None:
    """Without importing it: the controller never does."""
    try:
        found = find_spec("ray") is not None
    except ValueError:
        found = False
    if not found:
        raise MissingExtra("this needs the library 'ray', which is not installed", hint="pip install 'shoestring[ray]'")
