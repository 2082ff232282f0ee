"""The OpenAPI 3.1 document, from the table of endpoints and the types of their bodies and answers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from shoestring.server.endpoints import Endpoint
from shoestring.server.handlers import JSON
from shoestring.server.schemas import ProblemOut

_REF = "#/components/schemas/{name}"
_EVERYWHERE = {
    400: "The request cannot be understood.",
    401: "The token is missing or unknown.",
    503: "Too many connections with a token are open.",
}
_REASONS = {
    404: "There is no such run or trial.",
    408: "The body took too long.",
    409: "Not possible in the current status of the run.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "Valid, but it cannot be run like this.",
    429: "Too many already.",
}


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    types = _types(endpoints)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    refs = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Shoestring",
            "version": version("shoestring"),
            "summary": "Hyperparameter tuning and bags of jobs on spot instances.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
    }


def _types(endpoints: Sequence[Endpoint]) -> list[type]:
    found: dict[type, None] = {ProblemOut: None}
    for endpoint in endpoints:
        found.update(dict.fromkeys(endpoint.answers.values()))
        found.update(dict.fromkeys(endpoint.parameters.values()))
        if endpoint.body is not None:
            found[endpoint.body] = None
    return list(found)


def _operation(endpoint: Endpoint, refs: dict[type, dict[str, Any]]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "parameters": [*_in_path(endpoint, refs), *_in_query(endpoint), *_in_headers(endpoint)],
        "responses": {
            **{str(status): _answer(endpoint, refs[kind]) for status, kind in endpoint.answers.items()},
            **{str(status): _refusal(reason, refs[ProblemOut]) for status, reason in _refusals(endpoint).items()},
        },
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": refs[endpoint.body]}}}
    if endpoint.public:
        operation["security"] = []
    return operation


def _refusals(endpoint: Endpoint) -> dict[int, str]:
    statuses = list(endpoint.refusals)
    if endpoint.parameters:
        statuses.append(404)
    if endpoint.body is not None:
        statuses += [408, 413, 415]
    reasons = {} if endpoint.public else dict(_EVERYWHERE)
    return reasons | {status: _REASONS[status] for status in sorted(statuses)}


def _answer(endpoint: Endpoint, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": endpoint.summary, "content": {endpoint.media: {"schema": schema}}}


def _refusal(reason: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": reason, "content": {JSON: {"schema": schema}}}


def _in_path(endpoint: Endpoint, refs: dict[type, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": refs[kind]}
        for name, kind in endpoint.parameters.items()
    ]


def _in_query(endpoint: Endpoint) -> list[dict[str, Any]]:
    (_,), components = msgspec.json.schema_components([endpoint.query], ref_template=_REF)
    fields: dict[str, Any] = components[endpoint.query.__name__]["properties"]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in fields.items()]


def _in_headers(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "description": meaning, "schema": {"type": "string", "pattern": "^[0-9]{1,12}$"}}
        for name, meaning in endpoint.headers.items()
    ]
