"""Streams: a run as server-sent events, and its journal as lines.

An event's id is the number of its journal entry, so a client that lost the connection sends the last id (Last-Event-ID)
and gets what it missed, nothing twice. Progress comes as `status` between them, without an id; `end` is last.
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
"""Without events a comment is sent, so that proxies keep the connection open and lost clients are noticed."""
LOOK_EVERY_S = 0.5
BATCH = 500
"""Entries read at a time: a slow client must not make us hold a whole journal."""


def lines_after(folder: RunFolder, after: int) -> list[tuple[int, bytes]]:
    """The next batch of journal entries, with their numbers."""
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
def counted_stream(service: Service) -> Iterator[None]:
    service.streams += 1
    try:
        yield
    finally:
        service.streams -= 1


def refuse_too_many(service: Service) -> None:
    if service.streams >= MAX_STREAMS:
        raise Refusal(429, f"{MAX_STREAMS} streams are open already", hint="close some, or request pages")


async def journal_lines(service: Service, run: RunHandle, after: int) -> AsyncIterator[bytes]:
    """The journal so far, one JSON object per line."""
    with counted_stream(service):
        while not service.closing.is_set():
            try:
                found = await service.slowly(lines_after, run.folder, after)
            except ShoestringError:
                return  # the status reports that the journal is damaged
            if not found:
                return
            after = found[-1][0]
            yield b"".join(line + b"\n" for _, line in found)


async def events(service: Service, run: RunHandle, after: int) -> AsyncIterator[bytes]:
    """The run from the entry after this one on, until it is over or the service ends."""
    shown = b""
    with counted_stream(service):
        while not service.closing.is_set():
            changed, over = run.changed, run.over  # read first: a change in the meantime wakes us immediately
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
            if len(found) < BATCH and not over and not await _wait_for_change(service, run, changed):
                yield b": still here\n\n"


async def _wait_for_change(service: Service, run: RunHandle, changed: asyncio.Event) -> bool:
    """Wait until the run changes or the service shuts down; False after `KEEP_ALIVE_S` without either."""
    waits = [asyncio.ensure_future(event.wait()) for event in (changed, service.closing)]
    silent_s = 0.0
    try:
        while silent_s < KEEP_ALIVE_S:
            nap_s = LOOK_EVERY_S if run.driven is None else KEEP_ALIVE_S
            done, _ = await asyncio.wait(waits, timeout=nap_s, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return True
            silent_s += nap_s
            if run.driven is None:  # its controller may belong to another shell: poll it
                await service.find(run.id, missing_ok=True)
    finally:
        for wait in waits:
            wait.cancel()
    return False
