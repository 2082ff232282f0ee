"""The service as an ASGI application: routes, authentication, and errors as JSON."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Callable
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
from shoestring.server.endpoints import ENDPOINTS, Endpoint
from shoestring.server.handlers import JSON
from shoestring.server.limits import Refusal
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

    def route(endpoint: Endpoint) -> Route:
        async def answer(request: Request) -> Response:
            return await endpoint.handler(request.app.state.service, request)

        return Route(endpoint.path, answer, methods=[endpoint.method], name=endpoint.handler.__name__)

    openapi_json = msgspec.json.encode(document(ENDPOINTS))

    async def openapi(_: Request) -> Response:
        return Response(openapi_json, media_type=JSON)

    app = Starlette(
        routes=[*map(route, ENDPOINTS), Route("/openapi.json", openapi)],
        lifespan=lifespan,
        exception_handlers={HTTPException: _not_found, ShoestringError: _refused, Exception: _broken},
    )
    app.router.redirect_slashes = False
    return _Authenticated(app, TokenStore(store / FILE))


class _Authenticated:
    """Requires a valid token: checked before anything of the request but its headers is read."""

    def __init__(self, app: ASGIApp, tokens: TokenStore) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (
            scope["type"] == "http" and (scope["path"] in PUBLIC or self._has_token(scope))
        ):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = _problem(401, "a valid token is required", "send Authorization: Bearer TOKEN")
            answer.headers["WWW-Authenticate"] = "Bearer"
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)

    def _has_token(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, secret = given[0].decode("latin-1").partition(" ")
        return scheme.lower() == "bearer" and self._tokens.name_of(secret.strip()) is not None


def _problem(status: int, error: str, hint: str = "") -> Response:
    return Response(msgspec.json.encode(ProblemOut(error=error, hint=hint)), status, media_type=JSON)


def _not_found(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _problem(error.status_code, error.detail, "see /openapi.json")
    answer.headers.update(error.headers or {})
    return answer


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, ShoestringError)
    return _problem(_status(error), str(error), error.hint)


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
    return _problem(500, "sorry, this should not have happened", "nothing on record is lost; the log says where")
