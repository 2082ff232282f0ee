"""Named random streams: the same labels give the same draws on every machine and in every process.

Python's own `hash()` is salted per process, so labels go through BLAKE2b instead.
"""

from __future__ import annotations

from hashlib import blake2b
from random import Random

Label = str | int | float


def _number(labels: tuple[Label, ...]) -> int:
    text = "\x1f".join(map(repr, labels))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def generator(*labels: Label) -> Random:
    """A fresh generator for these labels; two draws for two purposes need two labels."""
    return Random(_number(labels))


def uniform(*labels: Label) -> float:
    """One number in [0, 1) for these labels, without the cost of a whole generator."""
    return (_number(labels) >> 11) * 2.0**-53
