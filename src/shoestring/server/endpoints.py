"""The endpoints: one table, from which both the routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from shoestring.server import handlers
from shoestring.server import schemas as s
from shoestring.server.handlers import JSON
from shoestring.server.service import Service

Method = Literal["GET", "POST"]
Handler = Callable[[Service, Request], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    method: Method
    path: str
    handler: Handler
    summary: str
    answers: Mapping[int, type]
    media: str = JSON
    """Of the answer."""
    query: type[msgspec.Struct] = s.Nothing
    body: type[msgspec.Struct] | None = None
    refusals: tuple[int, ...] = ()
    """HTTP statuses beside those of every endpoint."""
    parameters: Mapping[str, type] = field(default_factory=dict)
    """In the path."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Request headers that are read, and their meaning."""
    public: bool = False


_ID = {"id": s.Name}
_TRIAL = {"id": s.Name, "number": int}
LAST_EVENT_ID = {"Last-Event-ID": "The last entry already known; wins over `after`."}

ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/runs",
        handler=handlers.submit,
        summary="Submit a study or a bag.",
        body=s.Submit,
        answers={201: s.Run, 200: s.Run},
        refusals=(409, 422, 429),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs",
        handler=handlers.list_runs,
        summary="All runs, by name.",
        query=s.RunsPage,
        answers={200: s.Runs},
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}",
        handler=handlers.get_run,
        summary="Status and progress of a run.",
        parameters=_ID,
        answers={200: s.Run},
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/cancel",
        handler=handlers.cancel,
        summary="Stop a run for good: save trials, release machines.",
        parameters=_ID,
        answers={202: s.Run},
        refusals=(409,),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/resume",
        handler=handlers.resume,
        summary="Resume a run that is paused, parked or could not be started.",
        parameters=_ID,
        answers={202: s.Run},
        refusals=(409,),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/results",
        handler=handlers.results,
        summary="The trials, in the order in which they were added.",
        parameters=_ID,
        query=s.ItemsPage,
        answers={200: s.ResultsOut},
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/trials/{number}",
        handler=handlers.trial,
        summary="One trial.",
        parameters=_TRIAL,
        answers={200: s.TrialOut},
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/trials/{number}/why",
        handler=handlers.why,
        summary="Every event and decision about a trial, with reasons.",
        parameters=_TRIAL,
        query=s.ItemsPage,
        answers={200: s.ExplanationOut},
        refusals=(409,),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/receipt",
        handler=handlers.receipt,
        summary="The cost of a run so far, by instance type.",
        parameters=_ID,
        answers={200: s.ReceiptOut},
        refusals=(409,),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/journal",
        handler=handlers.journal,
        summary="Every event and decision so far, one JSON object per line.",
        parameters=_ID,
        query=s.After,
        answers={200: str},
        media=handlers.LINES,
        refusals=(429,),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/events",
        handler=handlers.watch,
        summary="The same as it happens, as server-sent events: entry, status, end.",
        parameters=_ID,
        query=s.After,
        headers=LAST_EVENT_ID,
        answers={200: s.EventOut},
        media=handlers.EVENTS,
        refusals=(429,),
    ),
    Endpoint(
        method="POST",
        path="/v1/callbacks/slurm",
        handler=handlers.slurm_callback,
        summary="A Slurm job has ended or lost a node: wake its waiters.",
        body=s.SlurmCallback,
        answers={202: s.Heard},
    ),
    Endpoint(
        method="GET",
        path="/v1/health",
        handler=handlers.health,
        summary="Liveness check. Needs no token.",
        answers={200: s.Health},
        public=True,
    ),
)
