"""HTTP/1.1 with limits: the head of a request must be short and in time, connections without a token few.

Without these an unauthenticated client could tie up memory or connections; uvicorn limits the size for its slower
parser only, the time for neither, and connections for all clients together. What is refused here is answered as
everywhere: with `{"error": ...}`.
"""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from shoestring.server.limits import HEAD_TIMEOUT_S, MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_WITHOUT_TOKEN
from shoestring.server.schemas import ProblemOut

ADMIT = "shoestring.admit"
"""Extension of the ASGI scope: called once the request has shown a token; False if too many others have."""


class LimitedHttp(HttpToolsProtocol):
    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _idle_since = 0.0
    _has_token = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._start_head_timer()
        self._make_room()

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
            self._refuse(431, f"the head of the request has more than {MAX_HEAD_BYTES:,} bytes", "send fewer headers")

    def connection_lost(self, exc: Exception | None) -> None:
        self._reset_head()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ADMIT: self._admit}  # type: ignore[dict-item]  # a function, as only we need it

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg.rstrip("."), "send HTTP/1.1")

    def _admit(self) -> bool:
        self._has_token = True
        return sum(connection._has_token for connection in self._open()) <= MAX_CONNECTIONS

    def _make_room(self) -> None:
        without = [connection for connection in self._open() if not connection._has_token]
        idle = [connection for connection in without if connection._is_idle()]
        if len(without) > MAX_WITHOUT_TOKEN and idle:
            min(idle, key=lambda connection: connection._idle_since).transport.close()

    def _open(self) -> list[LimitedHttp]:
        everyone = cast("set[LimitedHttp]", self.connections)
        return [connection for connection in everyone if not connection.transport.is_closing()]

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start_head_timer(self) -> None:
        if self._deadline is None:  # counted from its first byte: one byte at a time gains nothing
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self._time_out)

    def _time_out(self) -> None:
        if self._head_bytes:
            self._refuse(408, f"the head of the request did not arrive within {HEAD_TIMEOUT_S:g} s", "send it again")
        else:
            self.transport.close()  # it has requested nothing

    def _reset_head(self) -> None:
        self._head_bytes = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: int, error: str, hint: str) -> None:
        """Answer a request that never reaches the application, and close."""
        if self.transport.is_closing():
            return
        body = msgspec.json.encode(ProblemOut(error=error, hint=hint))
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
