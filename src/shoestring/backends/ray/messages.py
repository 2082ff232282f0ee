"""The messages between the controller and the driver process: one JSON object per line."""

from __future__ import annotations

from typing import Literal

import msgspec


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start", tag_field="do"):
    """Run the segment in a folder under an actor of this name, on one node. Idempotent by name."""

    number: int
    actor: str
    node: str
    folder: str
    cpus: float = 0.0
    gpus: float = 0.0


class End(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="do"):
    number: int
    actor: str


class Probe(msgspec.Struct, frozen=True, kw_only=True, tag="probe", tag_field="do"):
    """Does this node answer now? Ray counts a dead one as alive for seconds."""

    node: str


class Node(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    address: str
    alive: bool
    resources: dict[str, float]


class Connected(msgspec.Struct, frozen=True, kw_only=True, tag="connected", tag_field="told"):
    ray: str
    python: str
    address: str
    """Of the head, as other nodes join it."""


class NotConnected(msgspec.Struct, frozen=True, kw_only=True, tag="not connected", tag_field="told"):
    why: Literal["silent", "versions", "other"]
    detail: str


class View(msgspec.Struct, frozen=True, kw_only=True, tag="view", tag_field="told"):
    """What Ray answers now. Orders up to number `heard` have been passed on."""

    heard: int
    nodes: list[Node]
    actors: list[str]
    """Those of this run that are not dead."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True, tag="trouble", tag_field="told"):
    """An order for an actor failed."""

    actor: str
    detail: str


class NodeAnswered(msgspec.Struct, frozen=True, kw_only=True, tag="node answered", tag_field="told"):
    """To a probe."""

    node: str


AnyOrder = Start | End
AnyInput = AnyOrder | Probe
AnyMessage = Connected | NotConnected | View | Trouble | NodeAnswered
