"""PriceWatch: the prices of the user's own machines, read again and again from files and commands beside the loop.

What was read is stored in the run's folder (`prices.jsonl`) before a bill can depend on it: a restarted controller
bills by the same prices, whatever the file or the command says by then.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from shoestring.errors import DataError, PermanentError, ShoestringError
from shoestring.kernel.types import Offer
from shoestring.market.own import CLUSTER, NodeType, OwnMarket
from shoestring.market.price_files import read_prices
from shoestring.units import parse_usd
from shoestring.world.live.clock import RunClock

READ_EVERY_S = 300.0
"""Real time. Spot prices of today change a few times a day."""
COMMAND_TIMEOUT_S = 60.0
_RECORDED = "prices.jsonl"


class PricePoint(NamedTuple):
    """A price and the wall time from which on it is valid."""

    wall: float
    usd_per_hour: float


class _Recorded(msgspec.Struct, frozen=True):
    offer: Offer
    at: float
    usd_per_hour: float


# -- reading -----------------------------------------------------------------------------------------------------------
def read_price(node: NodeType) -> list[PricePoint]:
    """What is known of the price of this type, oldest first: the whole file, or the one price a command prints."""
    if node.usd_per_hour is not None:
        return [PricePoint(0.0, node.usd_per_hour)]
    points = _from_command(node) if node.price_command else _from_file(node)
    now = time.time()
    known = [point for point in points if point.wall <= now]
    if not known:
        raise DataError(f"{node.price_file} has no price of {node.machine} up to now", hint="load older prices")
    return known


def _from_command(node: NodeType) -> list[PricePoint]:
    command = node.price_command or ()
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise PermanentError(
            f"the price command of {node.label} cannot be started: {error.strerror}", hint=f"check {command[0]}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise PermanentError(
            f"the price command of {node.label} took more than {COMMAND_TIMEOUT_S:.0f} s", hint="it must print and exit"
        ) from error
    lines = done.stdout.split()
    if done.returncode or not lines:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise PermanentError(
            f"the price command of {node.label} failed with exit code {done.returncode}"
            f"{f': {said[-1][:200]}' if said else ' and printed nothing'}",
            hint="it must print dollars per hour, for example 0.08, and exit with 0",
        )
    try:
        price = parse_usd(lines[0], f"price of {node.label}")
    except ShoestringError as error:
        raise PermanentError(
            f"the price command of {node.label}: {error}", hint="it must print 0.08, or $0.08"
        ) from None
    return [PricePoint(time.time(), price)]


def _from_file(node: NodeType) -> list[PricePoint]:
    book = read_prices(
        node.price_file or "",
        machines={node.machine},
        zones=None if node.zone == CLUSTER else {node.zone},
        provider=node.provider,
        max_gap_s=math.inf,
    )
    if len(book) > 1:
        zones = ", ".join(sorted(offer.zone for offer in book))
        raise DataError(
            f"{node.price_file} has prices of {node.machine} in several zones: {zones}", hint="give its zone"
        )
    (trace,) = (book.trace(offer) for offer in book)
    return [PricePoint(*pair) for pair in zip(trace.times, trace.usd_per_hour, strict=True)]


def recorded_prices(run_dir: Path) -> dict[Offer, dict[float, float]]:
    """The prices that a run has seen: for each offer, market time and dollars per hour."""
    file, found = run_dir / _RECORDED, dict[Offer, dict[float, float]]()
    lines = file.read_bytes().splitlines() if file.exists() else []
    for number, line in enumerate(lines):
        try:
            point = msgspec.json.decode(line, type=_Recorded)
        except msgspec.DecodeError as error:
            if number == len(lines) - 1:
                break  # cut off by a crash, before anything was billed by it
            raise DataError(f"{file}, line {number + 1} cannot be read: {error}", hint="take that line out") from None
        found.setdefault(point.offer, {})[point.at] = point.usd_per_hour
    return found


# -- watching ----------------------------------------------------------------------------------------------------------
class PriceWatch:
    def __init__(self, market: OwnMarket, clock: RunClock, run_dir: Path, every_s: float = READ_EVERY_S) -> None:
        self._market = market
        self._clock = clock
        self._file = run_dir / _RECORDED
        self._every_s = every_s
        self._nodes = [node for node in market.nodes if node.is_watched]
        self._readings: dict[Offer, Future[list[PricePoint]]] = {}
        self._due_at = time.monotonic() + every_s
        self._failing: set[Offer] = set()
        self._thread = ThreadPoolExecutor(1, "prices") if self._nodes else None
        recorded = recorded_prices(run_dir)
        for node in self._nodes:
            self._begin(node, recorded.get(node.offer, {}))

    def _begin(self, node: NodeType, recorded: dict[float, float]) -> None:
        """The past of a file, then what this run has seen."""
        offer = node.offer
        if not recorded:
            recorded = {self._clock.started_at: self._market.book.trace(offer).usd_per_hour[-1]}
            self._record([_Recorded(offer, at, price) for at, price in recorded.items()])
        first = min(recorded)
        past = {} if node.price_file is None else dict(self._in_market_time(read_price(node)))
        points = {at: price for at, price in past.items() if at < first} | recorded
        self._market.book.begin_with(offer, sorted(points), [points[at] for at in sorted(points)])

    def update(self) -> None:
        """Take over what was read meanwhile, and read again when it is time."""
        for offer in [offer for offer, reading in self._readings.items() if reading.done()]:
            self._take_over(offer, self._readings.pop(offer))
        if self._thread is None or self._readings or time.monotonic() < self._due_at:
            return
        self._due_at = time.monotonic() + self._every_s
        self._readings = {node.offer: self._thread.submit(read_price, node) for node in self._nodes}

    def _take_over(self, offer: Offer, reading: Future[list[PricePoint]]) -> None:
        try:
            points = reading.result()
        except ShoestringError as error:
            if offer not in self._failing:
                sys.stderr.write(f"warning: {error}; {offer} counts at its last known price\n")
            self._failing.add(offer)
            return
        self._failing.discard(offer)
        last = self._market.book.trace(offer).times[-1]
        fresh = [(at, price) for at, price in self._in_market_time(points) if at > last]
        seen = [_Recorded(offer, at, price) for at, price in fresh if self._market.book.observe(offer, at, price)]
        self._record(seen)

    def _in_market_time(self, points: Iterable[PricePoint]) -> Iterator[tuple[float, float]]:
        return ((self._clock.at(point.wall), point.usd_per_hour) for point in points)

    # -- stored --------------------------------------------------------------------------------------------------------
    def _record(self, points: list[_Recorded]) -> None:
        if not points:
            return
        self._file.touch()
        with open(self._file, "r+b", buffering=0) as file:
            stored = file.read()
            file.seek(stored.rfind(b"\n") + 1)  # over a line that a crash cut off
            file.truncate()
            file.write(b"".join(msgspec.json.encode(point) + b"\n" for point in points))
            os.fsync(file.fileno())

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
