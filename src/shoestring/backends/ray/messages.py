"""What the controller and the process that talks to Ray say to each other: one JSON object a line."""

from __future__ import annotations

from typing import Literal

import msgspec


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start", tag_field="do"):
    """Have an actor of this name run the segment in a folder, on one node. Idempotent by name."""

    number: int
    actor: str
    node: str
    folder: str
    cpus: float = 0.0
    gpus: float = 0.0


class End(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="do"):
    number: int
    actor: str


class Node(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    address: str
    alive: bool
    resources: dict[str, float]


class Connected(msgspec.Struct, frozen=True, kw_only=True, tag="connected", tag_field="told"):
    ray: str
    python: str


class NotConnected(msgspec.Struct, frozen=True, kw_only=True, tag="not connected", tag_field="told"):
    why: Literal["silent", "versions", "other"]
    detail: str


class View(msgspec.Struct, frozen=True, kw_only=True, tag="view", tag_field="told"):
    """What Ray says now. Orders up to number `heard` have been passed on."""

    heard: int
    nodes: list[Node]
    actors: list[str]
    """Of this run, and not dead."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True, tag="trouble", tag_field="told"):
    """An actor could not do what it was to do."""

    actor: str
    detail: str


AnyOrder = Start | End
AnyNews = Connected | NotConnected | View | Trouble
