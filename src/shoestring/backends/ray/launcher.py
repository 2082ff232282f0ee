"""NodeLauncher: nodes that are launched for leases, by commands of the user's own (`launch` and `end` of a node type).

Commands run in threads: the controller never waits for them. What was launched is stored before the command starts
(`leases/<id>/launch.json`) and removed only after the end command has succeeded. So a controller that was killed in
between leaves nothing unknown: its successor launches again what is still awaited, which makes no second node because
the name of the node is the same, and ends the nodes of leases that are over.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import LeaseId, Offer
from shoestring.market.own import NodeType
from shoestring.worker.process_identity import birth
from shoestring.worker.task import read_json, write_json

COMMAND_TIMEOUT_S = 600.0
_LAUNCH, _CALL, _END_BY, _LOG = "launch.json", "launcher.json", "end_by", "launcher.log"
_THREADS = 16
_RETRY_S, _MOST_RETRY_S = 2.0, 60.0
_CLOSE_TIMEOUT_S = 120.0
_LONGEST_NAME = 30
_WAIT_EVERY_S = 0.05


class _Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How a node was launched and is to be ended, whatever the node types say by then; stored."""

    launch: tuple[str, ...]
    end: tuple[str, ...]
    environment: dict[str, str]


class _Call(msgspec.Struct, frozen=True):
    """The process of the latest command, which may outlive its controller."""

    pid: int
    birth: str | None


class _Ending:
    def __init__(self) -> None:
        self.done: Future[str] | None = None
        self.tries = 0
        self.next_at = 0.0


class NodeLauncher:
    def __init__(self, run_dir: Path, mark: str, types: Iterable[NodeType] = ()) -> None:
        """`mark`: tells this run from all others on the cluster, whose leases have the same names."""
        self._leases = run_dir / "leases"
        self._mark = mark
        self._run = re.sub("[^a-z0-9]+", "-", run_dir.name.lower()).strip("-")[:_LONGEST_NAME].strip("-")
        self._types = {node.offer: node for node in types if node.launch is not None}
        self._launches: dict[LeaseId, Future[str]] = {}
        """Why it failed, or "" """
        self._ends: dict[LeaseId, _Ending] = {}
        self._kept_until: dict[LeaseId, float] = {}
        self._threads = ThreadPoolExecutor(_THREADS, "launcher")

    def resource(self, lease: LeaseId) -> str:
        """By which the node of this lease announces itself."""
        return f"lease-{lease}-{self._mark}"

    # -- orders --------------------------------------------------------------------------------------------------------
    def can_launch(self, offer: Offer) -> bool:
        return offer in self._types

    def has_launched(self, lease: LeaseId) -> bool:
        """By this controller or an earlier one, and not ended."""
        return (self._leases / lease / _LAUNCH).exists()

    def launch(self, request: RequestLease, address: str, end_at: float) -> None:
        lease, node = request.lease, self._types[request.offer]
        if lease in self._launches:
            return
        self._write_end_by(lease, end_at)
        launch = _Launch(
            launch=node.launch or (),
            end=node.end or (),
            environment=self._environment(lease, node, address, end_at),
        )
        write_json(self._leases / lease / _LAUNCH, launch)
        self._launches[lease] = self._threads.submit(self._call, lease, launch.launch, launch.environment)

    def _environment(self, lease: LeaseId, node: NodeType, address: str, end_at: float) -> dict[str, str]:
        return {
            "SHOESTRING_NODE": self._name(lease),
            "SHOESTRING_LEASE": lease,
            "SHOESTRING_LABEL": node.label,
            "SHOESTRING_MACHINE": node.machine,
            "SHOESTRING_ZONE": node.zone,
            "SHOESTRING_SPOT": "1" if node.spot else "0",
            "SHOESTRING_ADDRESS": address,
            "SHOESTRING_RESOURCES": json.dumps({self.resource(lease): 1, node.label: 1}),
            "SHOESTRING_END_BY": f"{end_at:.0f}",
            "SHOESTRING_END_BY_FILE": str(self._leases / lease / _END_BY),
        }

    def keep_until(self, lease: LeaseId, end_at: float) -> None:
        """A machine that watches this file ends in time without a controller."""
        if self._kept_until.get(lease) != end_at:
            self._kept_until[lease] = end_at
            if self.has_launched(lease):
                self._write_end_by(lease, end_at)

    def _write_end_by(self, lease: LeaseId, end_at: float) -> None:
        write_json(self._leases / lease / _END_BY, round(end_at))
        self._kept_until[lease] = end_at

    def end(self, lease: LeaseId) -> None:
        """Its node must not cost anything any more: repeated until the command succeeds."""
        if lease in self._ends:
            return
        if not self.has_launched(lease):
            self._forget(lease)
            return
        self._write_end_by(lease, 0.0)
        self._ends[lease] = _Ending()
        self._try_to_end(lease)

    def _try_to_end(self, lease: LeaseId) -> None:
        ending = self._ends[lease]
        ending.tries += 1
        ending.done = self._threads.submit(self._end, lease, self._launches.get(lease))

    def _end(self, lease: LeaseId, launching: Future[str] | None) -> str:
        """After the launch, for a machine that comes up later would run unnoticed. One that waits for its turn never
        starts; threads serve calls in their order, so a launch that is waited for has its thread."""
        if launching is not None and not launching.cancel():
            launching.exception()
        launch = read_json(self._leases / lease / _LAUNCH, _Launch)
        why = self._call(lease, launch.end, launch.environment)
        if not why:
            (self._leases / lease / _LAUNCH).unlink(missing_ok=True)
        return why

    # -- what happens --------------------------------------------------------------------------------------------------
    def failed(self, lease: LeaseId) -> str:
        """Why its launch command failed; "" if it did not, or has not yet."""
        launching = self._launches.get(lease)
        return _outcome(launching) if launching is not None and launching.done() else ""

    def update(self) -> None:
        now = time.monotonic()
        for lease, ending in list(self._ends.items()):
            if ending.done is None:
                if now >= ending.next_at:
                    self._try_to_end(lease)
            elif ending.done.done():
                self._note_end(lease, ending, _outcome(ending.done))

    def _note_end(self, lease: LeaseId, ending: _Ending, why: str) -> None:
        ending.done = None
        if not why:
            self._forget(lease)
            return
        if ending.tries == 1:
            sys.stderr.write(f"warning: node {self._name(lease)} could not be ended ({why}); this is tried again\n")
        ending.next_at = time.monotonic() + min(_MOST_RETRY_S, _RETRY_S * 2 ** (ending.tries - 1))

    def _forget(self, lease: LeaseId) -> None:
        for of_lease in (self._ends, self._launches, self._kept_until):
            of_lease.pop(lease, None)

    def _name(self, lease: LeaseId) -> str:
        return f"shoestring-{self._run}-{self._mark}-{lease}"

    def close(self) -> None:
        """Nodes of leases that are open stay; those that are to end are waited for, as they cost money."""
        until = time.monotonic() + _CLOSE_TIMEOUT_S
        while self._ends and time.monotonic() < until:
            self.update()
            time.sleep(_WAIT_EVERY_S)
        for lease in self._ends:
            log = self._leases / lease / _LOG
            sys.stderr.write(
                f"warning: node {self._name(lease)} may still run and cost money: end it by hand (see {log})\n"
            )
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- commands (in threads) -----------------------------------------------------------------------------------------
    def _call(self, lease: LeaseId, command: tuple[str, ...], environment: dict[str, str]) -> str:
        """Run a command. Why it failed, or "" """
        folder = self._leases / lease
        _await_earlier(folder / _CALL)
        with (folder / _LOG).open("ab") as log:
            try:
                called = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **environment},
                    start_new_session=True,  # Ctrl-C is the controller's to handle
                )
            except OSError as error:
                return f"{command[0]} cannot be started: {error.strerror}"
        write_json(folder / _CALL, _Call(called.pid, birth(called.pid)))
        try:
            code = called.wait(COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(called.pid, signal.SIGKILL)
            called.wait()
            return f"{command[0]} took more than {COMMAND_TIMEOUT_S:.0f} s"
        if code == 0:
            return ""
        how = f"exit code {code}" if code > 0 else f"killed by {signal.Signals(-code).name}"
        return f"{command[0]}: {how}{_last_line(folder / _LOG)}"


def _await_earlier(file: Path) -> None:
    """A command of a controller that was killed: it may still be at work on this machine."""
    until = time.monotonic() + COMMAND_TIMEOUT_S
    try:
        earlier = read_json(file, _Call)
    except FileNotFoundError:
        return
    while earlier.birth is not None and birth(earlier.pid) == earlier.birth:
        if time.monotonic() > until:
            os.killpg(earlier.pid, signal.SIGKILL)
        time.sleep(_WAIT_EVERY_S)


def _outcome(done: Future[str]) -> str:
    try:
        return done.result()
    except CancelledError:
        return ""
    except Exception as error:  # a full disk, a folder that was removed
        return f"{type(error).__name__}: {error}"


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return f": {lines[-1][:200]}" if lines else ""
