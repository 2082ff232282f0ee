"""Limits of the service, and the error for a request it refuses."""

from __future__ import annotations

from shoestring.errors import ShoestringError

MAX_BODY_BYTES = 4 << 20
"""A bag that lists 10,000 jobs one by one takes about a megabyte."""
MAX_JOBS = 100_000
"""In one bag: `over` multiplies, so a small body can request very many."""
MAX_HEAD_BYTES = 1 << 16
HEAD_TIMEOUT_S = 10.0
BODY_TIMEOUT_S = 20.0
"""For the head of a request, and for its body, to arrive as a whole."""
MAX_CONNECTIONS = 500
"""With a token. Beyond that, requests are answered 503."""
MAX_WITHOUT_TOKEN = 200
"""Connections that have not shown a token yet: beyond that, the one that has been idle longest is closed, so that they
cannot keep token holders out."""
MAX_PAGE = 1000
MAX_STREAMS = 200
"""Event streams and journals being read at the same time."""
MAX_WAITING = 1000
"""Runs in the queue."""
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$"
"""Of run names: they cannot lead out of the folder of all runs."""


class Refusal(ShoestringError):
    """This request is refused, with this HTTP status."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
