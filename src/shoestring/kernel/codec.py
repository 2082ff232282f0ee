"""Encodes turns as bytes and decodes them: JSON that people and SQL can read.

Laws. Faithful: what is read back is what was written, with the order of dict keys, which has a meaning (the last
parameter of a grid varies fastest) and which a resumed run must share with the run it resumes. So the same turn always
gives the same bytes, and keys are not sorted. Lossless: JSON has no NaN and no infinity, so a turn that holds one lists
its path in `not_finite`, with a null in its place. Strict: what cannot be decoded is a ValueError whose text follows
the name of the entry ("entry 17 ...").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from shoestring.kernel.decisions import AnyDecision, Decision
from shoestring.kernel.events import AnyEvent, Event
from shoestring.kernel.history import Entry

Path = tuple[str | int, ...]


class NewerFormat(ValueError):
    """The bytes hold a class, or a version of one, that this shoestring does not know."""


class _Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    not_finite: tuple[tuple[Path, str], ...] = ()
    """First, so that the decoder can tell by the first bytes."""
    event: AnyEvent
    decisions: tuple[AnyDecision, ...] = ()


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    seq: int
    meta: dict[str, float] = {}
    turn: msgspec.Raw


_ENCODER = msgspec.json.Encoder()
_PACKER = msgspec.msgpack.Encoder()
_U = ord("u")
_HAS_NOT_FINITE = b'{"not_finite":'
_PACKED_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""How NaN and the infinities begin in MessagePack; other bytes may look alike, so a match is only a suspicion."""


def encode_turn(event: Event, decisions: Sequence[Decision]) -> bytes:
    """What happened and what was decided, without measured times: equal bytes, equal turns."""
    turn = _Turn(event=event, decisions=tuple(decisions))  # type: ignore[arg-type]
    body = _ENCODER.encode(turn)
    # The u of "null" is searched first, as a number: all that a report costs, and five times as fast as the string.
    if _U in body and body.find(b"null") >= 0 and _suspicious(turn):
        paths = tuple(_not_finite(msgspec.to_builtins(turn)))
        if paths:
            return _ENCODER.encode(msgspec.structs.replace(turn, not_finite=paths))
    return body


def decode_turn(body: bytes) -> tuple[Event, tuple[Decision, ...]]:
    try:
        turn = _restored(body) if body.startswith(_HAS_NOT_FINITE) else _decoder().decode(body)
    except (msgspec.DecodeError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _diagnosed(body, error) from error
    return turn.event, turn.decisions


def encode_entry(entry: Entry) -> bytes:
    """A whole entry on one line, for a file or a wire; a journal keeps number and measured times beside the turn."""
    turn = msgspec.Raw(encode_turn(entry.event, entry.decisions))
    return _ENCODER.encode(_Line(seq=entry.seq, meta=entry.meta, turn=turn))


def decode_entry(line: bytes) -> Entry:
    try:
        read = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _diagnosed(line, error) from error
    event, decisions = decode_turn(bytes(read.turn))
    return Entry(seq=read.seq, event=event, decisions=decisions, meta=read.meta)


@cache
def _decoder() -> msgspec.json.Decoder[_Turn]:
    # Made on first use: compiling the two unions takes milliseconds that a command which reads no journal need not pay.
    return msgspec.json.Decoder(_Turn)


def _suspicious(turn: _Turn) -> bool:
    """Could a null be a NaN or an infinity? MessagePack keeps them, and packing is ten times faster than a walk."""
    try:
        return _PACKED_NOT_FINITE.search(_PACKER.encode(turn)) is not None
    except OverflowError:  # an integer of more than 64 bits: only JSON holds it
        return True


def _not_finite(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(value, float):
        if value - value != 0:
            yield path, str(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _not_finite(item, (*path, index))


def _restored(body: bytes) -> _Turn:
    """The turn with its NaNs and infinities put back where nulls stand for them."""
    plain = msgspec.json.decode(body)
    for path, text in plain.pop("not_finite"):
        *parents, last = path
        place = plain
        for key in parents:
            place = place[key]
        place[last] = float(text)
    return msgspec.convert(plain, _Turn)


def _diagnosed(body: bytes, error: Exception) -> ValueError:
    """Why this is not a turn: no JSON at all, from a later version, or neither."""
    try:
        plain = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as broken:
        return ValueError(f"is not JSON: {broken}")
    unknown = sorted(_tags(plain) - _known_tags())
    if unknown:
        return NewerFormat(f"was written by a newer shoestring: it holds {', '.join(map(repr, unknown))}")
    return ValueError(f"is not a recorded turn: {error}")


def _tags(plain: Any) -> set[str]:
    turn = plain if isinstance(plain, dict) else {}
    decisions = turn.get("decisions")
    facts = [turn.get("event"), *(decisions if isinstance(decisions, list) else [])]
    facts += [fact.get("wish") for fact in facts if isinstance(fact, dict)]
    tags = (fact.get("type") for fact in facts if isinstance(fact, dict))
    return {tag for tag in tags if isinstance(tag, str)}


@cache
def _known_tags() -> frozenset[str]:
    return frozenset(str(cls.__struct_config__.tag) for cls in (*AnyEvent.__args__, *AnyDecision.__args__))
