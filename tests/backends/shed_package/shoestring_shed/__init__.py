"""A backend in a package of its own: `on="shed:8"` is a shed with eight machines, each a process of this computer that
runs the host.

Only where machines come from is written here. How orders reach them, the host, leases, bills and workers are those of
Shoestring.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection

from shoestring.backends.folder_post import FolderPost
from shoestring.backends.hosted_machines import HostedMachines, OverLimit
from shoestring.backends.hosted_worker import HostedWorkers
from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import MachineEnd
from shoestring.backends.on_market import on_market
from shoestring.backends.processes import ProcessBackend
from shoestring.backends.registry import Nodes
from shoestring.backends.site import Site
from shoestring.errors import SpecError
from shoestring.kernel.types import LeaseId
from shoestring.market.priced import PricedMarket
from shoestring.worker.process_identity import birth

MACHINE = "machine.json"
_LEAVING_S = 20.0


class ShedPlace:
    forms = ("shed", "shed:MACHINES")
    machine = "shed-machine"
    least_slice_s = 10.0
    in_caller = False

    def parse(self, address: str | None) -> None:
        if address is not None and not address.isdigit():
            raise SpecError(f"on='shed:{address}' says no number of machines", hint="write it as shed:8")

    def check(self, address: str | None) -> Nodes:
        return Nodes(number=_machines(address), slots=1)

    def survives_power_loss(self, address: str | None) -> bool:  # noqa: ARG002
        return False

    def open(self, address: str | None, site: Site, market: PricedMarket) -> ProcessBackend:
        post = FolderPost(site)
        machines = HostedMachines(Shed(post, _machines(address)), post, site.clock)
        return ProcessBackend(
            site, on_market(machines, market, site, grants=False), HostedWorkers(site.run_dir, post), market
        )


def _machines(address: str | None) -> int:
    return 4 if address is None else int(address)


class Shed:
    """What is rented is written beside the lease before anything else can be: a restarted controller finds it."""

    notice_s = 2.0

    def __init__(self, post: FolderPost, machines: int) -> None:
        self._post = post
        self._machines = machines
        self._hosts: dict[LeaseId, subprocess.Popen[bytes]] = {}

    def rent(self, record: LeaseRecord, *, again: bool) -> None:  # noqa: ARG002
        lease = record.request.lease
        folder = self._post.folder(lease)
        if (folder / MACHINE).exists():
            return
        if (
            sum(self._is_up(LeaseId(other.parent.name)) for other in folder.parent.glob(f"*/{MACHINE}"))
            >= self._machines
        ):
            raise OverLimit(f"all {self._machines} machines of the shed are in use")
        with (folder / "log.txt").open("ab") as log:
            host = subprocess.Popen(
                [sys.executable, "-P", "-m", "shoestring.host", str(folder), f"machine-{lease}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (folder / MACHINE).write_text(json.dumps({"pid": host.pid, "birth": birth(host.pid)}))
        self._hosts[lease] = host

    def update(self, open_leases: Collection[LeaseId]) -> bool:
        for lease, host in list(self._hosts.items()):
            if host.poll() is not None and lease not in open_leases:
                del self._hosts[lease]
        return True

    def charged_from(self, lease: LeaseId, signed_wall: float) -> float:  # noqa: ARG002
        return signed_wall

    def ended(self, lease: LeaseId) -> MachineEnd | None:
        """A machine that is gone without a word of its host."""
        if not (self._post.folder(lease) / MACHINE).exists() or self._is_up(lease):
            return None
        return MachineEnd("lost", "its machine stopped")

    def end(self, lease: LeaseId) -> None:
        """The host has been dismissed, and ends by itself with everything it runs."""
        until = time.monotonic() + _LEAVING_S
        while self._is_up(lease) and time.monotonic() < until:
            time.sleep(0.01)
        if self._is_up(lease):
            os.kill(self._pid(lease), signal.SIGKILL)

    def close(self, *, leased: bool) -> None:
        """Machines keep running while they are prepaid."""

    def _is_up(self, lease: LeaseId) -> bool:
        if lease in self._hosts:
            return self._hosts[lease].poll() is None
        try:
            known = json.loads((self._post.folder(lease) / MACHINE).read_text())
        except FileNotFoundError:
            return False
        return birth(known["pid"]) == known["birth"]

    def _pid(self, lease: LeaseId) -> int:
        pid: int = json.loads((self._post.folder(lease) / MACHINE).read_text())["pid"]
        return pid
