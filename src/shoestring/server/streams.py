"""Streams: a run as server-sent events, and its journal as lines.

An event's id is the number of its journal entry, so a client that lost the line says where it was (Last-Event-ID) and
gets what it missed, nothing twice. How far the run is comes as `status` between them, without an id; `end` is last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager

from shoestring.errors import ShoestringError
from shoestring.kernel.codec import encode_entry
from shoestring.runs.folder import RunFolder
from shoestring.server.limits import MAX_STREAMS, Refusal
from shoestring.server.run_state import RunHandle
from shoestring.server.service import Service
from shoestring.storage.journal.sqlite import SqliteJournal

KEEP_ALIVE_S = 15.0
"""Without news a comment is sent, so that proxies keep the line open and lost clients are noticed."""
LOOK_EVERY_S = 0.5
BATCH = 500
"""Entries read at a time: a slow client must not make us hold a whole journal."""


def lines_after(folder: RunFolder, after: int) -> list[tuple[int, bytes]]:
    """The next entries of a journal and their numbers, a batch of them."""
    if not folder.exists():
        return []
    found: list[tuple[int, bytes]] = []
    with closing(SqliteJournal.open_readonly(folder.journal)) as reader:
        for entry in reader.read_on(reader.mark_before(after + 1)):
            if entry.seq > after:
                found.append((entry.seq, encode_entry(entry)))
                if len(found) == BATCH:
                    break
    return found


@contextmanager
def one_of_the_streams(service: Service) -> Iterator[None]:
    service.streams += 1
    try:
        yield
    finally:
        service.streams -= 1


def refuse_too_many(service: Service) -> None:
    if service.streams >= MAX_STREAMS:
        raise Refusal(429, f"{MAX_STREAMS} streams are open already", hint="close some, or ask for pages")


async def journal_lines(service: Service, run: RunHandle, after: int) -> AsyncIterator[bytes]:
    """The journal so far, one JSON object a line."""
    with one_of_the_streams(service):
        while not service.closing.is_set():
            try:
                found = await service.slowly(lines_after, run.folder, after)
            except ShoestringError:
                return  # the status says that the journal is damaged, and where
            if not found:
                return
            after = found[-1][0]
            yield b"".join(line + b"\n" for _, line in found)


async def events(service: Service, run: RunHandle, after: int) -> AsyncIterator[bytes]:
    """The run from the entry after this one on, until it is over or the service ends."""
    shown = b""
    with one_of_the_streams(service):
        while not service.closing.is_set():
            changed, over = run.changed, run.over  # before looking: what changes meanwhile wakes us at once
            try:
                found = await service.slowly(lines_after, run.folder, after)
            except ShoestringError:
                found = []
            if found:
                after = found[-1][0]
                yield b"".join(b"id: %d\nevent: entry\ndata: %b\n\n" % item for item in found)
            status = run.answer(service.queue.ahead_of(run))
            if status != shown:
                shown = status
                yield b"event: status\ndata: %b\n\n" % status
            if over and not found:
                yield b"event: end\ndata: {}\n\n"
                return
            if len(found) < BATCH and not over and not await _news(service, run, changed):
                yield b": still here\n\n"


async def _news(service: Service, run: RunHandle, changed: asyncio.Event) -> bool:
    """Wait for a change, of the run or of the service's mind; False if none came for long."""
    waits = [asyncio.ensure_future(event.wait()) for event in (changed, service.closing)]
    silent_s = 0.0
    try:
        while silent_s < KEEP_ALIVE_S:
            nap_s = LOOK_EVERY_S if run.driven is None else KEEP_ALIVE_S
            done, _ = await asyncio.wait(waits, timeout=nap_s, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return True
            silent_s += nap_s
            if run.driven is None:  # it may be driven from elsewhere, and nobody but us looks
                await service.find(run.id, missing_ok=True)
    finally:
        for wait in waits:
            wait.cancel()
    return False
