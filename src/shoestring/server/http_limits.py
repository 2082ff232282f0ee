"""HTTP/1.1 with limits: the head of a request has to be short, and to arrive in time.

Without both, anybody could tie up memory or connections before showing a token; uvicorn limits the first for its slower
parser only, and the second for neither.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shoestring.server.limits import HEAD_TIMEOUT_S, MAX_HEAD_BYTES


class LimitedHttp(HttpToolsProtocol):
    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        self._expect_a_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:  # the head is there, what comes is the body
            self._forget()
            return
        self._expect_a_head()
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _expect_a_head(self) -> None:
        if self._deadline is None:  # counted from its first byte: one byte at a time gains nothing
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _forget(self) -> None:
        self._head_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
