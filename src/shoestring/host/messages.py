"""The messages between a controller and the host of a lease: files in the folder of the lease, each replaced whole.

The controller writes `hosting.json` and `orders/`, the host everything else. Times are wall times.
"""

from __future__ import annotations

import msgspec

from shoestring.kernel.types import EndCause

HOSTING, SIGNED, NOTICE, LEFT, ALIVE, ORDERS = (
    "hosting.json",
    "host.json",
    "notice.json",
    "left.json",
    "alive",
    "orders",
)
OVER = "over.json"
"""In the folder of a segment's part, once its worker has ended."""


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """Until when to host; replaced when the lease is extended, removed when it is released."""

    end_at: float
    heartbeat: str
    """A file the controller touches while it runs."""
    silence_s: float
    """Seconds without a heartbeat after which the controller counts as dead and the machine is released."""


class HostSignature(msgspec.Struct, frozen=True, kw_only=True):
    """Which machine hosts the lease, where, and since when."""

    job: str
    """What its provider calls it: on Slurm the number of the job."""
    node: str
    address: str
    wall: float


class HostNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The machine is about to end."""

    wall: float


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The host has stopped by itself, and why."""

    wall: float
    cause: EndCause
    why: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of a segment to run, or of the part of it that runs on this machine."""

    folder: str


class Over(msgspec.Struct, frozen=True, kw_only=True):
    """The exit reason of a worker that did not report an end itself."""

    words: str
