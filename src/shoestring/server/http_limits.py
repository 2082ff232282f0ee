"""HTTP/1.1 with limits: the head of a request must be short, and arrive in time.

Without both, an unauthenticated client could tie up memory or connections; uvicorn limits the size for its slower
parser only, and the time for neither.
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
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if (
            self.cycle is not None and not self.cycle.response_complete
        ):  # the head is complete, what follows is the body
            self._reset_head()
            return
        self._start_head_timer()
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._reset_head()
        super().connection_lost(exc)

    def _start_head_timer(self) -> None:
        if self._deadline is None:  # counted from its first byte: one byte at a time gains nothing
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _reset_head(self) -> None:
        self._head_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
