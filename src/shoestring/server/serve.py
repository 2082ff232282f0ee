"""Serving: the socket, the signals, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import uvicorn

from shoestring.errors import SpecError
from shoestring.runs.folder import SERVICE_LOCK
from shoestring.server.app import make_app
from shoestring.server.http_limits import LimitedHttp
from shoestring.server.service import Service
from shoestring.server.tokens import FILE, read_tokens

_STREAMS_END_S = 5


class _Server(uvicorn.Server):
    """Shuts down gracefully on the first signal, exits on the second. A requested stop is a success: the signal is not
    raised again, as uvicorn would."""

    service: Service | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        if self.should_exit:
            sys.stderr.write(
                "Exiting immediately; runs continue without the service, and the next service adopts them.\n"
            )
            sys.stderr.flush()
            os._exit(0)  # nothing is half-written: the journals belong to the controllers
        sys.stderr.write("Shutting down: runs save and pause; press again to exit immediately.\n")
        self.should_exit = True
        if self.service is not None:
            self.service.closing.set()  # event streams end now; uvicorn waits for connections first


def serve(*, host: str, port: int, store: Path, folder: Path, max_concurrent_runs: int) -> None:
    """Serve until a signal arrives."""
    tokens = read_tokens(store / FILE)
    with _claimed(store), contextlib.closing(_bound(host, port)) as listening:
        address, chosen = listening.getsockname()[:2]
        server = _Server(
            uvicorn.Config(
                make_app(
                    store, folder, max_concurrent_runs, opened=lambda service: setattr(server, "service", service)
                ),
                http=LimitedHttp,
                ws="none",
                lifespan="on",
                log_level="critical",  # errors may contain secrets of a request
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_STREAMS_END_S,
            )
        )
        sys.stderr.write(exposure(address))
        if not tokens:
            sys.stderr.write("there is no token yet: create one with shoestring serve token add NAME\n")
        shown = f"[{address}]" if ":" in address else address
        print(f"serving {store} on http://{shown}:{chosen}, at most {max_concurrent_runs} runs at a time", flush=True)
        server.run(sockets=[listening])


def _claimed(store: Path) -> IO[str]:
    """A lock on the folder of all runs, held while it is open: two services would both start the queued runs."""
    try:
        store.mkdir(parents=True, exist_ok=True)
        lock = (store / SERVICE_LOCK).open("w")
    except OSError as error:
        raise SpecError(f"cannot write in {store}: {error.strerror}", hint="choose another --store") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise SpecError(f"another service serves {store}", hint="use that one, or another --store") from None
    return lock


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # With the protocol given, asyncio turns Nagle's algorithm off: it costs 40 ms per answer.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen(1024)
        except BaseException:
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        raise SpecError(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}",
            hint="choose another --port (0: any free port) or --host",
        ) from None
    return listening


def exposure(address: str) -> str:
    """A warning for an address that other machines can reach; empty for a loopback address."""
    if ipaddress.ip_address(address).is_loopback:
        return ""
    return (
        f"warning: {address} can be reached from other machines, and there is no TLS: tokens travel in the clear. "
        "Put a proxy with TLS in front, or use an SSH tunnel to 127.0.0.1.\n"
    )
