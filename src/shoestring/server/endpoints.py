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

Handler = Callable[[Service, Request], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    summary: str
    answers: Mapping[int, type]
    media: str = JSON
    """Of the answer."""
    query: type[msgspec.Struct] = s.Nothing
    body: type[msgspec.Struct] | None = None
    refusals: tuple[int, ...] = ()
    """Statuses beside those that every endpoint may answer."""
    parameters: Mapping[str, type] = field(default_factory=dict)
    """In the path."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """That mean something, and what."""
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
        summary="How far a run is.",
        parameters=_ID,
        answers={200: s.Run},
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/cancel",
        handler=handlers.cancel,
        summary="End a run for good: save, give the machines back, conclude.",
        parameters=_ID,
        answers={202: s.Run},
        refusals=(409,),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{id}/resume",
        handler=handlers.resume,
        summary="Go on with a run that is paused, parked or could not be started.",
        parameters=_ID,
        answers={202: s.Run},
        refusals=(409,),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/results",
        handler=handlers.results,
        summary="The trials, in the order in which they were invented.",
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
        summary="What happened to a trial, and why, in words.",
        parameters=_TRIAL,
        query=s.ItemsPage,
        answers={200: s.ExplanationOut},
        refusals=(409,),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/receipt",
        handler=handlers.receipt,
        summary="What a run cost so far, machine by machine.",
        parameters=_ID,
        answers={200: s.ReceiptOut},
        refusals=(409,),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{id}/journal",
        handler=handlers.journal,
        summary="Every event and decision so far, one JSON object a line.",
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
        summary="A Slurm job has ended or lost a node: wake whoever waits for it.",
        body=s.SlurmCallback,
        answers={202: s.Heard},
    ),
    Endpoint(
        method="GET",
        path="/v1/health",
        handler=handlers.health,
        summary="Is the service there? Needs no token, and tells nothing else.",
        answers={200: s.Health},
        public=True,
    ),
)
