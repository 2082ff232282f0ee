"""The service as an ASGI application: routes, authentication, and errors as JSON."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from shoestring.errors import BackendError, DataError, JournalDamaged, MissingExtra, ShoestringError, SpecError
from shoestring.server.endpoints import ENDPOINTS, Endpoint, Method
from shoestring.server.handlers import JSON
from shoestring.server.http_limits import ADMIT
from shoestring.server.limits import MAX_CONNECTIONS, Refusal
from shoestring.server.openapi import document
from shoestring.server.schemas import ProblemOut
from shoestring.server.service import Service
from shoestring.server.tokens import FILE, TokenStore

PUBLIC = frozenset(endpoint.path for endpoint in ENDPOINTS if endpoint.public)


def make_app(
    store: Path, folder: Path, max_concurrent_runs: int, opened: Callable[[Service], None] = lambda _: None
) -> ASGIApp:
    """`opened` receives the service once it has resumed its runs."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.service = service = Service(store, folder, max_concurrent_runs)
        await service.open()
        opened(service)
        work = asyncio.create_task(service.queue.work())
        try:
            yield
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            await service.close()

    def route(path: str, endpoints: Sequence[Endpoint]) -> Route:
        handlers = {endpoint.method: endpoint.handler for endpoint in endpoints}

        async def answer(request: Request) -> Response:
            method: Method = "POST" if request.method == "POST" else "GET"  # HEAD is answered like GET
            return await handlers[method](request.app.state.service, request)

        return Route(path, answer, methods=list(handlers))

    def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, ShoestringError)
        # Where the service keeps its runs is of no use to its clients.
        return problem(_status(error), str(error).replace(f"{store}{os.sep}", ""), error.hint)

    by_path = {endpoint.path: [e for e in ENDPOINTS if e.path == endpoint.path] for endpoint in ENDPOINTS}
    openapi_json = msgspec.json.encode(document(ENDPOINTS))

    async def openapi(_: Request) -> Response:
        return Response(openapi_json, media_type=JSON)

    app = Starlette(
        routes=[*(route(*item) for item in by_path.items()), Route("/openapi.json", openapi)],
        lifespan=lifespan,
        exception_handlers={HTTPException: _not_found, ShoestringError: refused, Exception: _broken},
    )
    app.router.redirect_slashes = False
    return _Authenticated(app, TokenStore(store / FILE))


class _Authenticated:
    """Requires a valid token: checked before anything of the request but its headers is read."""

    def __init__(self, app: ASGIApp, tokens: TokenStore) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await (self._refusal(scope) or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope["path"] in PUBLIC:
            return None
        if not self._has_token(scope):
            return problem(
                401,
                "a valid token is required",
                "send Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer", "Connection": "close"},
            )
        if not scope["extensions"][ADMIT]():
            return problem(
                503,
                f"{MAX_CONNECTIONS} connections are open already",
                "close some, or try again in a moment",
                headers={"Retry-After": "1", "Connection": "close"},
            )
        return None

    def _has_token(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, secret = given[0].decode("latin-1").partition(" ")
        return scheme.lower() == "bearer" and self._tokens.name_of(secret.strip()) is not None


def problem(status: int, error: str, hint: str = "", headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(ProblemOut(error=error, hint=hint)), status, headers, media_type=JSON)


def _not_found(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if "Allow" in headers:  # made from a set: the same answer every time
        headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
    return problem(error.status_code, error.detail, "see /openapi.json", headers)


def _status(error: ShoestringError) -> int:
    match error:
        case Refusal():
            return error.status
        case SpecError() | DataError() | MissingExtra() | BackendError():
            return 422
        case JournalDamaged():
            return 409
        case _:
            return 500


def _broken(request: Request, error: Exception) -> Response:
    # Only where it happened: the content of a request may be secret, and stays out of logs.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    sys.stderr.write(f"shoestring: {request.method} broke at {where}: {type(error).__name__}\n")
    return problem(500, "sorry, this should not have happened", "nothing on record is lost; the log says where")
