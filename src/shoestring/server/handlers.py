"""What each endpoint does: read the request, call the service, convert the answer to its type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from shoestring.report.receipt import receipt_of
from shoestring.report.results import results_of
from shoestring.report.study import Study
from shoestring.report.trials import TrialRow
from shoestring.server import schemas as s
from shoestring.server.bodies import read_body, read_query
from shoestring.server.journal_follower import Follower
from shoestring.server.limits import Refusal
from shoestring.server.run_state import RunHandle
from shoestring.server.service import Service
from shoestring.server.streams import events, journal_lines, refuse_too_many

JSON, LINES, EVENTS = "application/json", "application/x-ndjson", "text/event-stream"


def _json(answer: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type=JSON)


def _run(service: Service, run: RunHandle, status: int = 200) -> Response:
    return Response(run.answer(service.queue.ahead_of(run)), status, media_type=JSON)


async def _requested_run(service: Service, request: Request) -> RunHandle:
    return await service.get(request.path_params["id"])


# -- runs --------------------------------------------------------------------------------------------------------------
async def submit(service: Service, request: Request) -> Response:
    run, new = await service.submit(await read_body(request, s.Submit))
    return _run(service, run, 201 if new else 200)


async def list_runs(service: Service, request: Request) -> Response:
    page = read_query(request, s.RunsPage)
    names = [name for name in await service.names() if name > page.cursor]
    found = [await service.find(name, missing_ok=True) for name in names[: page.limit]]
    items = [run.plain(service.queue.ahead_of(run)) for run in found if run is not None]
    more = names[page.limit - 1] if len(names) > page.limit else None
    return _json(s.Runs(items=items, next=more))


async def get_run(service: Service, request: Request) -> Response:
    read_query(request, s.Nothing)
    return _run(service, await _requested_run(service, request))


async def cancel(service: Service, request: Request) -> Response:
    run = await _requested_run(service, request)
    await service.cancel(run)
    return _run(service, run, 202)


async def resume(service: Service, request: Request) -> Response:
    run = await _requested_run(service, request)
    await service.resume(run)
    return _run(service, run, 202)


# -- results -----------------------------------------------------------------------------------------------------------
async def results(service: Service, request: Request) -> Response:
    page = read_query(request, s.ItemsPage)
    run = await _requested_run(service, request)

    def read(follower: Follower) -> tuple[list[TrialRow], str | None, int]:
        state = follower.state
        rows = follower.tally.rows(page.cursor, page.limit)
        return rows, None if state.spec is None else state.spec.metric, len(state.jobs)

    rows, metric, jobs = await service.reading(run, read)
    after = page.cursor + len(rows)
    items = await service.slowly(_trials, rows, run.folder.path)
    return _json(s.ResultsOut(metric=metric, items=items, next=after if after < jobs else None))


async def trial(service: Service, request: Request) -> Response:
    read_query(request, s.Nothing)
    number = _number(request)
    run = await _requested_run(service, request)
    rows = await service.reading(run, lambda follower: follower.tally.rows(number, 1))
    if not rows:
        raise _no_trial(number)
    (found,) = await service.slowly(_trials, rows, run.folder.path)
    return _json(found)


async def why(service: Service, request: Request) -> Response:
    page = read_query(request, s.ItemsPage)
    number = _number(request)
    run = await _requested_run(service, request)
    if not await service.reading(run, lambda follower: number < len(follower.state.jobs)):
        raise _no_trial(number)
    lines = (await service.slowly(Study.in_folder(run.folder).why, number))[page.cursor :]
    items = [s.ExplanationLineOut(since_start_s=line.since_start_s, text=line.text) for line in lines[: page.limit]]
    more = page.cursor + page.limit if len(lines) > page.limit else None
    return _json(s.ExplanationOut(trial=number, items=items, next=more))


async def receipt(service: Service, request: Request) -> Response:
    read_query(request, s.Nothing)

    def read(follower: Follower) -> dict[str, Any] | None:
        return None if follower.state.spec is None else receipt_of(follower.state).to_plain()

    plain = await service.reading(await _requested_run(service, request), read)
    if plain is None:
        raise Refusal(409, "the run has not started: nothing is billed", hint="retry when it runs")
    return _json(msgspec.convert(plain, s.ReceiptOut))


def _trials(rows: list[TrialRow], folder: Path) -> list[s.TrialOut]:
    """Reads the last line of each trial's output, from the run's folder."""
    outputs = [record["output"] for record in results_of(rows, folder)]
    return [_trial(row, output) for row, output in zip(rows, outputs, strict=True)]


def _trial(row: TrialRow, output: str | None) -> s.TrialOut:
    return s.TrialOut(
        trial=row.number,
        status=row.status,
        fraction=row.fraction,
        feasible=row.feasible,
        step=row.step,
        value=row.value,
        config=row.config,
        machines=list(row.machines),
        seconds=row.seconds,
        cost_usd=row.cost_usd,
        revocations=row.revocations,
        lost_steps=row.lost_steps,
        failures=row.failures,
        checkpoint=row.checkpoint,
        detail=row.detail,
        metrics=dict(row.metrics),
        attempts=row.attempts,
        segment=row.segment,
        output=output,
    )


def _number(request: Request) -> int:
    text = request.path_params["number"]
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Refusal(404, f"there is no trial {text[:20]!r}", hint="trials have numbers, from 0 on")
    return int(text)


def _no_trial(number: int) -> Refusal:
    return Refusal(404, f"there is no trial {number}", hint="GET .../results lists them")


# -- streams -----------------------------------------------------------------------------------------------------------
async def journal(service: Service, request: Request) -> Response:
    after = read_query(request, s.After).after
    run = await _requested_run(service, request)
    refuse_too_many(service)
    return StreamingResponse(journal_lines(service, run, after), media_type=LINES)


async def watch(service: Service, request: Request) -> Response:
    after = read_query(request, s.After).after
    known = request.headers.get("last-event-id")
    if known is not None:
        if not (known.isascii() and known.isdigit() and len(known) <= 12):
            raise Refusal(400, "Last-Event-ID is not the number of an entry", hint="leave it out to begin at the start")
        after = int(known)
    run = await _requested_run(service, request)
    refuse_too_many(service)
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(events(service, run, after), media_type=EVENTS, headers=headers)


# -- the rest ----------------------------------------------------------------------------------------------------------
async def slurm_callback(service: Service, request: Request) -> Response:
    callback = await read_body(request, s.SlurmCallback)
    return _json(s.Heard(woken=service.callbacks.deliver(callback)), 202)


async def health(service: Service, request: Request) -> Response:  # noqa: ARG001
    return _json(s.Health(ok=True))
