"""A simulated case as the lines of its journal, and the four things in them that may change.

Everything else in a journal is for ever: same words, same seed, same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

import shoestring as ss
from shoestring.kernel.codec import encode_entry

MASKED = {
    "why": "sentences for people",
    "question": "names of background questions",
    "placement": "a word of the recorded spec that was renamed (as_printed)",
    "reason": "the code of an ending (and with it the version of the tag WindDown)",
}
"""What a comparison passes over, by the name of its field."""

_RENAMED_WORDS = {"as_printed": "spottune_as_printed"}
_RENAMED_TAGS = re.compile(r"^WindDown/\d+$")


def journal_of(words: Mapping[str, object]) -> list[bytes]:
    """The lines of a run's journal, without measured times."""
    study = ss.simulate(**words)  # type: ignore[arg-type]
    return [encode_entry(msgspec.structs.replace(entry, meta={})) for entry in study.entries()]


def masked(line: bytes) -> bytes:
    return msgspec.json.encode(_masked(msgspec.json.decode(line)))


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _masked(item) for name, item in value.items() if name not in ("why", "question", "reason")}
        if isinstance(placement := kept.get("placement"), str):
            kept["placement"] = _RENAMED_WORDS.get(placement, placement)
        if isinstance(tag := kept.get("type"), str) and _RENAMED_TAGS.match(tag):
            kept["type"] = "WindDown"
        return kept
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return value
