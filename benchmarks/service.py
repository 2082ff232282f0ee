"""The service under load: 50 clients poll the status of a bag of 10,000 jobs, for a minute, while it runs.

    python -m benchmarks.service [--quick] [--json FILE]

The server is a real one in a process of its own, the bag runs on its local backend, and every client keeps one
connection and polls again as soon as it is answered. So the latencies are those at full load.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.rows import Row, arguments, publish
from shoestring.client import Client
from shoestring.errors import MissingExtra, need
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.server.journal_follower import progress_of
from shoestring.server.tokens import FILE, add_token

CLIENTS = 50
NAME = "bag"


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int, str]]:
    """Port and process of a service, and a token for it."""
    store = folder / "runs"
    token = add_token(store / FILE, "load")
    program = [sys.executable, "-c", "from shoestring.cli import main; main()", "serve", "--port", "0"]
    process = subprocess.Popen([*program, "--store", str(store)], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert said is not None
        yield int(said[1]), process.pid, token
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def submit(client: Client, jobs: int) -> None:
    client.submit({"name": NAME, "command": ["true"], "over": {"x": list(range(jobs))}, "deadline": "30d"})
    while not (client.get(NAME)["progress"] or {}).get("by_status", {}).get("finished"):
        time.sleep(0.2)


async def ask(port: int, token: str, until: float, waits_ms: list[float]) -> None:
    """One client: how long each answer took. Reads no more of HTTP than it must, to leave the cores to the server."""
    reading, writing = await asyncio.open_connection("127.0.0.1", port)
    question = f"GET /v1/runs/{NAME} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    while (began := time.perf_counter()) < until:
        writing.write(question)
        head = await reading.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if not head.startswith(b"HTTP/1.1 200 ") or length is None:
            raise RuntimeError(f"the service answered {head[:60]!r}")
        body = await reading.readexactly(int(length[1]))
        waits_ms.append(1000 * (time.perf_counter() - began))
        assert b'"trials":' in body
    writing.close()


def clients(port: int, token: str, seconds: float, count: int) -> list[float]:
    waits_ms: list[float] = []

    async def all_of_them() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(ask(port, token, until, waits_ms) for _ in range(count)))

    asyncio.run(all_of_them())
    return waits_ms


def rss_mb(pid: int, field: str) -> float:
    """VmRSS: now. VmHWM: the most there ever was."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measured(jobs: int, seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as (port, pid, token):
        client = Client(f"http://127.0.0.1:{port}", token)
        submit(client, jobs)
        before = client.get(NAME)["progress"]["entries"]
        spent = cpu_s(pid)
        waits = clients(port, token, seconds, CLIENTS)
        spent = cpu_s(pid) - spent
        run = client.get(NAME)
        assert run["status"] == "running", "the bag is to run all the time"
        one = clients(port, token, min(5.0, seconds), 1)
        memory, most = rss_mb(pid, "VmRSS"), rss_mb(pid, "VmHWM")
        told = run["progress"]["entries"] - before
        began = time.perf_counter()
        progress_of(Study.in_folder(RunFolder(Path(folder) / "runs" / NAME)).state)
        anew_ms = 1000 * (time.perf_counter() - began)
        client.cancel(NAME)
        client.wait(NAME, timeout_s=120)
    load = f"{CLIENTS} clients for {seconds:g} s, bag of {jobs:,} jobs"
    return [
        Row("status_p99_ms", percentile(waits, 0.99), "ms", f"{load}, each asking again at once"),
        Row("status_p50_ms", statistics.median(waits), "ms", f"{len(waits):,} calls"),
        Row("status_alone_p99_ms", percentile(one, 0.99), "ms", f"baseline: one client, {len(one):,} calls"),
        Row(
            "status_by_folding_ms",
            anew_ms,
            "ms",
            "baseline: the journal folded anew, once, as `shoestring status` does",
        ),
        Row("requests_per_s", len(waits) / seconds, "calls/s", f"{os.cpu_count()} cores for server, bag and clients"),
        Row("server_cpu_ms_per_request", 1000 * spent / len(waits), "ms", "with the journal followed; load aside"),
        Row("rss_mb", memory, "MB", f"of the server with the bag's state; {most:.0f} MB at most"),
        Row("journal_entries_meanwhile", told, "entries", "folded by the server while it answered"),
    ]


def main() -> None:
    args = arguments(__doc__.partition("\n\n")[0])
    try:
        for library in ("starlette", "uvicorn", "httptools"):
            need(library, extra="server")
    except MissingExtra as missing:
        print(f"skipped: {missing} ({missing.hint})")
        return
    publish(measured(10_000, 5.0 if args.quick else 60.0), args.json)


if __name__ == "__main__":
    main()
