"""Answers to requests that cannot be met, in words."""

from __future__ import annotations

from shoestring.errors import ShoestringError


class Refusal(ShoestringError):
    """This request is refused, with this HTTP status."""

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
