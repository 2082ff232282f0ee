"""The search space: typed parameters, sampling, encoding."""

from __future__ import annotations

import msgspec


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """Stand-in until the real one is written beside it."""

    params: dict[str, str] = {}
