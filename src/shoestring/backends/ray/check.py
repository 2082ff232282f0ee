"""Checks of `on="ray"` and `on="ray:ADDRESS"` before a run starts, with one sentence per error."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from shoestring.backends.ray.joined_nodes import is_open, slots_of
from shoestring.backends.ray.link import look_at
from shoestring.errors import MissingExtra, PermanentError, SpecError

_ADDRESS = re.compile(r"auto|[^\s/:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")


class RayCluster(NamedTuple):
    """The size of an existing cluster."""

    nodes: int
    slots: int
    """Of its smallest node: GPUs if it has any, else cores."""


def ray_address(place: str) -> str | None:
    """The address in "ray:ADDRESS"; None in "ray", where nodes are started on this machine."""
    _, colon, address = place.partition(":")
    if not colon:
        return None
    if not _ADDRESS.fullmatch(address):
        raise SpecError(
            f"on={place!r} names no Ray cluster",
            hint="write it as ray:10.0.0.1:6379, the address `ray start --head` printed (not that of a Ray client), "
            "ray:auto for a cluster this machine belongs to, or ray to start nodes on this machine",
        )
    return address


def look_around(place: str) -> RayCluster | None:
    """Check that Ray is installed and the cluster answers; its size. None where nodes are started on this machine."""
    _require_ray()
    address = ray_address(place)
    if address is None:
        return None
    slots = [slots_of(node) for node in look_at(address, Path(os.devnull)).nodes if node.alive and is_open(node)]
    if not slots:
        raise PermanentError(
            f"the Ray cluster at {address} has no node with a CPU or a GPU", hint="add nodes: ray start --address=..."
        )
    return RayCluster(len(slots), min(slots))


def _require_ray() -> None:
    """Without importing it: the controller never does."""
    try:
        found = find_spec("ray") is not None
    except ValueError:
        found = False
    if not found:
        raise MissingExtra("this needs the library 'ray', which is not installed", hint="pip install 'shoestring[ray]'")
