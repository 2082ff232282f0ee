"""A client of the service (`shoestring serve`), on the standard library alone.

    client = Client("http://127.0.0.1:8765")
    run = client.submit({"command": "./simulate --seed {seed}", "over": {"seed": list(range(100))}, "name": "seeds"})
    client.wait(run["id"])
    for trial in client.results("seeds"): ...

Answers are plain dicts, as the service's OpenAPI document describes them.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Literal, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from shoestring.errors import ShoestringError, SpecError

TOKEN_VARIABLE = "SHOESTRING_TOKEN"
DEFAULT_URL = "http://127.0.0.1:8765"
AT_REST = frozenset(
    {"completed", "cancelled", "out_of_budget", "deadline_reached", "failed", "paused", "damaged"}
    | {"concluded", "parked"}  # words of services before 0.2
)
"""A run of this status is inactive until the user resumes it, or for good."""
_AGAIN_S = 1.0
_PATIENCE = 30
"""How often a broken stream is reopened without an event in between."""


class ServiceError(ShoestringError):
    """The service refused, or cannot be reached (`status` is 0)."""

    def __init__(self, message: str, *, status: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class ServiceEvent(NamedTuple):
    kind: str
    """entry: a line of the journal · status: progress of the run · end: the last event."""
    data: Any
    number: int | None
    """Of an entry; `watch(after=number)` continues after it."""


class Client:
    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, *, timeout_s: float = 60.0) -> None:
        """The token comes from SHOESTRING_TOKEN if it is not given."""
        if urlsplit(url).scheme not in ("http", "https"):
            raise SpecError(f"{url!r} is not the address of a service", hint=f"for example {DEFAULT_URL}")
        secret = token or os.environ.get(TOKEN_VARIABLE, "")
        if not secret:
            raise SpecError(
                "no token is given", hint=f"set {TOKEN_VARIABLE}; shoestring serve token add NAME creates one"
            )
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json"}
        self._opener = _opener(url)

    # -- runs ----------------------------------------------------------------------------------------------------------
    def submit(self, spec: Mapping[str, object], *, mode: Literal["run", "simulate"] = "run") -> dict[str, Any]:
        """Queue a run; the same spec again is the same run."""
        return self._answer("/v1/runs", body={"spec": dict(spec), "mode": mode})

    def list(self) -> Iterator[dict[str, Any]]:
        """All runs, by name."""
        return self._pages("/v1/runs", "")

    def get(self, run: str) -> dict[str, Any]:
        """Status and progress of a run."""
        return self._answer(_path(run))

    def cancel(self, run: str) -> dict[str, Any]:
        """Stop a run for good."""
        return self._answer(_path(run, "cancel"), body={})

    def resume(self, run: str) -> dict[str, Any]:
        """Resume a run that is paused, parked or could not be started."""
        return self._answer(_path(run, "resume"), body={})

    def wait(self, run: str, *, timeout_s: float | None = None) -> dict[str, Any]:
        """Until nothing happens in it any more; the run as it is then."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        nap_s = 0.1
        while (found := self.get(run))["status"] not in AT_REST:
            if until is not None and time.monotonic() > until:
                raise ServiceError(f"{run} is still {found['status']} after {timeout_s:g} s", hint="wait longer")
            time.sleep(nap_s)
            nap_s = min(2.0, 1.2 * nap_s)  # poll long runs less often
        return found

    # -- results -------------------------------------------------------------------------------------------------------
    def results(self, run: str) -> Iterator[dict[str, Any]]:
        """The trials, page by page as they are needed."""
        return self._pages(_path(run, "results"), 0)

    def receipt(self, run: str) -> dict[str, Any]:
        return self._answer(_path(run, "receipt"))

    def why(self, run: str, trial: int) -> Sequence[str]:
        """Every event and decision about a trial, as sentences."""
        return [line["text"] for line in self._pages(_path(run, "trials", str(trial), "why"), 0)]

    def journal(self, run: str, *, after: int = 0) -> Iterator[dict[str, Any]]:
        """Every event and decision so far."""
        with self._open(f"{_path(run, 'journal')}?{urlencode({'after': after})}") as lines:
            for line in lines:
                yield json.loads(line)

    def watch(self, run: str, *, after: int = 0) -> Iterator[ServiceEvent]:
        """The events of a run as they happen, to its end. A broken connection is resumed where it was."""
        broken = 0
        while broken < _PATIENCE:
            try:
                with self._open(_path(run, "events"), {"Last-Event-ID": str(after)}) as stream:
                    for event in _events(stream):
                        broken, after = 0, after if event.number is None else event.number
                        yield event
                        if event.kind == "end":
                            return
            except (OSError, http.client.HTTPException):
                pass
            except ServiceError as error:
                if error.status:
                    raise
            broken += 1
            time.sleep(_AGAIN_S)
        raise ServiceError(f"the connection to the service at {self.url} is lost", hint="is it running?")

    # -- inside --------------------------------------------------------------------------------------------------------
    def _pages(self, path: str, first: str | int) -> Iterator[dict[str, Any]]:
        cursor: str | int | None = first
        while cursor is not None:
            page = self._answer(f"{path}?{urlencode({'cursor': cursor})}")
            yield from page["items"]
            cursor = page["next"]

    def _answer(self, path: str, *, body: object = None) -> dict[str, Any]:
        with self._open(path, body=body) as answer:
            plain: dict[str, Any] = json.load(answer)
            return plain

    def _open(self, path: str, headers: Mapping[str, str] = {}, *, body: object = None) -> IO[bytes]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {**self._headers, **headers})
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            opened: IO[bytes] = self._opener.open(request, timeout=self._timeout_s)
            return opened
        except HTTPError as error:
            raise _refused(error) from None
        except URLError as error:
            raise ServiceError(
                f"the service at {self.url} cannot be reached: {error.reason}", hint="is it running? shoestring serve"
            ) from None


class _NoRedirects(HTTPRedirectHandler):
    """The service never redirects, and a token must not follow a redirect elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener(url: str) -> OpenerDirector:
    local = urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")
    return build_opener(_NoRedirects(), *([ProxyHandler({})] if local else []))


def _path(run: str, *parts: str) -> str:
    return "/".join(["/v1/runs", *(quote(part, safe="") for part in (run, *parts))])


def _refused(error: HTTPError) -> ServiceError:
    try:
        problem = json.load(error)
        return ServiceError(str(problem["error"]), status=error.code, hint=str(problem.get("hint", "")))
    except (ValueError, KeyError, TypeError, OSError):
        return ServiceError(f"the service answered {error.code} {error.reason}", status=error.code)


def _events(stream: IO[bytes]) -> Iterator[ServiceEvent]:
    """Server-sent events, as far as the service uses them: one line of data each."""
    fields: dict[str, str] = {}
    for raw in stream:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            number = fields.get("id")
            yield ServiceEvent(
                fields.get("event", "message"), json.loads(fields["data"]), int(number) if number else None
            )
            fields = {}
        else:
            fields = {}
