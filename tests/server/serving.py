"""A real service in a separate process, on a loopback port."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from shoestring.client import Client
from shoestring.runs.folder import RunFolder
from shoestring.server.controllers import holder
from shoestring.server.tokens import FILE, add_token
from shoestring.testing.slowness import PATIENCE_S

_PROGRAM = [sys.executable, "-c", "from shoestring.cli import main; main()", "serve"]
T = TypeVar("T")


class Serving:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "runs"
        self.token = add_token(self.store / FILE, "tester")
        self.log = folder / "server.log"
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    # -- process -------------------------------------------------------------------------------------------------------
    def start(self, *options: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SHOESTRING_")}
        # As a careless operator may have it: no child process may inherit or store it.
        environment["SHOESTRING_TOKEN"] = self.token
        began = self.log.stat().st_size if self.log.exists() else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*_PROGRAM, "--port", "0", "--store", str(self.store), "--folder", str(self.folder), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self.folder,
            )
        address = eventually(lambda: re.search(r"http://127\.0\.0\.1:(\d+)", self.log.read_text()[began:]))
        self.port = int(address[1])
        eventually(lambda: self.answers())

    def answers(self) -> bool:
        try:
            return self.ask("GET", "/v1/health", token=None)[0] == 200
        except OSError:
            return False

    def stop(self) -> int:
        """Gracefully; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Clean up, whatever the result of the test."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        for pid in self.left_behind():
            os.kill(pid, signal.SIGKILL)

    def left_behind(self) -> list[int]:
        """Processes with this service's folder in their command line."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                arguments = path.read_bytes()
            except OSError:
                continue
            if str(self.folder).encode() in arguments and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        return found

    def controller_of(self, run: str) -> int | None:
        return holder(RunFolder(self.store / run))

    # -- requests ------------------------------------------------------------------------------------------------------
    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.port}", self.token)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        token: str | None = "",
        headers: Mapping[str, str] = {},
    ) -> tuple[int, bytes]:
        """Status and answer of a raw request. An empty token: the right one."""
        sent = {"Content-Type": "application/json", **headers}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if body is not None and "Content-Length" not in sent and "Transfer-Encoding" not in sent:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def eventually(look: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """The first true result of `look`."""
    until = time.monotonic() + within_s
    while not (seen := look()):
        assert time.monotonic() < until, "timed out"
        time.sleep(0.05)
    return seen
