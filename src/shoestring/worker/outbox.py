"""The outbox: one JSON object per line, appended by the worker, read any number of times by the controller.

A line is one write, so a killed writer leaves whole lines; readers skip a torn one (a full disk). Nothing is ever
removed from it, which makes losing the controller harmless.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoestring.kernel.types import CheckpointRef, Metrics, SegmentCause
from shoestring.worker.steady_clock import SteadyClock


class OutboxLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    wall: float


class Started(OutboxLine, frozen=True, kw_only=True, tag="started"):
    """User code is about to run."""


class Numbers(OutboxLine, frozen=True, kw_only=True):
    step: int
    metrics: dict[str, float | str]
    """JSON has no NaN: values that are not finite are strings."""

    def numbers(self) -> Metrics:
        return {name: float(value) for name, value in self.metrics.items()}


class Reported(Numbers, frozen=True, kw_only=True, tag="report"):
    """The metrics after `step`."""


class SnapshotLine(Numbers, frozen=True, kw_only=True, tag="snapshot"):
    """The metrics on a smaller data fraction; `step` need not be done."""

    fraction: float


class Saved(OutboxLine, frozen=True, kw_only=True, tag="saved"):
    step: int
    ref: CheckpointRef
    took_s: float


class Unsaved(OutboxLine, frozen=True, kw_only=True, tag="unsaved"):
    """The checkpoint to resume from is missing or damaged."""

    ref: CheckpointRef
    detail: str


class Ended(OutboxLine, frozen=True, kw_only=True, tag="ended"):
    step: int
    cause: SegmentCause
    detail: str = ""


class GaveBack(OutboxLine, frozen=True, kw_only=True, tag="gave_back"):
    """No controller for too long: once the segment has ended, its machine is released."""

    detail: str


LONGEST_DETAIL = 2000
"""Characters. The text of an exception may be a whole data set."""
_CHUNK_BYTES = 1 << 20
AnyLine = Started | Reported | SnapshotLine | Saved | Unsaved | GaveBack | Ended
_decode = msgspec.json.Decoder(AnyLine).decode
_encode = msgspec.json.Encoder().encode


class Outbox:
    """The writing end. Several processes may write: appends of one line do not mix."""

    def __init__(self, path: Path, clock: SteadyClock | None = None) -> None:
        self.now = (clock or SteadyClock.begin()).time
        """The time of the run, which its lines are marked with."""
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._fd).st_size
        self._torn = size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"

    def write(self, line: AnyLine) -> None:
        if isinstance(line, Ended | Unsaved) and len(line.detail) > LONGEST_DETAIL:
            line = msgspec.structs.replace(line, detail=line.detail[:LONGEST_DETAIL] + "...")
        text = _encode(line) + b"\n"
        if self._torn:
            text, self._torn = b"\n" + text, False
        written = os.write(self._fd, text)
        if written != len(text):
            self._torn = True
            raise OSError(28, "No space left on device")
        if isinstance(line, Saved | Ended):
            os.fsync(self._fd)  # a finished trial, and a checkpoint, survive a power cut

    def report(self, step: int, metrics: Metrics) -> None:
        self.write(Reported(wall=self.now(), step=step, metrics=_encodable(metrics)))

    def snapshot(self, step: int, fraction: float, metrics: Metrics) -> None:
        self.write(SnapshotLine(wall=self.now(), step=step, fraction=fraction, metrics=_encodable(metrics)))


def _encodable(metrics: Metrics) -> dict[str, float | str]:
    return {name: value if math.isfinite(value) else repr(value) for name, value in metrics.items()}


class Tail:
    """The reading end: all whole lines since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._offset = 0

    def read(self) -> Iterator[AnyLine]:
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
        size = _CHUNK_BYTES
        while chunk := os.pread(self._fd, size, self._offset):
            whole = chunk.rfind(b"\n") + 1
            if not whole and len(chunk) < size:
                return  # not finished yet
            if not whole:
                size *= 2  # a line longer than a chunk: on to its end
                continue
            self._offset += whole
            for text in chunk[:whole].splitlines():
                try:
                    yield _decode(text)
                except msgspec.DecodeError:
                    continue  # torn by a full disk; its content is written again or lost with its step

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def retrace(path: Path) -> tuple[int, Ended | None]:
    """The last step reported or saved, and the end if there is one."""
    step, ended = 0, None
    tail = Tail(path)
    for line in tail.read():
        if isinstance(line, Ended):
            ended = line
        elif isinstance(line, Reported | Saved):
            step = max(step, line.step)
    tail.close()
    return step, ended
