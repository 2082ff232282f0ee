"""Read the body and the query of a request, within limits, as a type of `schemas`."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from shoestring.server.limits import BODY_TIMEOUT_S, MAX_BODY_BYTES, Refusal

T = TypeVar("T", bound=msgspec.Struct)


async def read_body(request: Request, kind: type[T]) -> T:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":  # a cross-site page cannot send this type without a CORS preflight
        raise Refusal(415, "the Content-Type is not JSON", hint="send Content-Type: application/json")
    return _as(kind, await _bytes(request))


def read_query(request: Request, kind: type[T]) -> T:
    pairs = request.query_params.multi_items()
    if len(pairs) != len(dict(pairs)):
        raise Refusal(400, "the query has a parameter twice", hint="leave one out")
    try:
        return msgspec.convert(dict(pairs), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"the query cannot be read: {error}", hint="see /openapi.json") from None


async def _bytes(request: Request) -> bytes:
    """The body, refused as soon as it is too long: the length in the header cannot be trusted."""
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
        raise _too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise _too_large()
    except TimeoutError:
        raise Refusal(408, f"the body did not arrive within {BODY_TIMEOUT_S:g} s", hint="send it again") from None
    except ClientDisconnect:
        raise Refusal(400, "the body is incomplete", hint="send it again") from None
    return bytes(body)


def _as(kind: type[T], body: bytes) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"the body is invalid: {error}", hint="see /openapi.json") from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise Refusal(400, f"the body is not JSON: {error}", hint="send one JSON object") from None


def _too_large() -> Refusal:
    return Refusal(413, f"the body has more than {MAX_BODY_BYTES:,} bytes", hint="split the bag into several")
