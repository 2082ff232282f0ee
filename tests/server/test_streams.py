"""Pages and streams: complete, in order, nothing twice, resumable."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.kernel.codec import decode_entry, encode_entry
from shoestring.runs.folder import RunFolder
from shoestring.server.limits import MAX_STREAMS
from tests.server.serving import Serving, eventually
from tests.server.test_life import bag, finished, let_go

RUN = "study-simulated"


def entries(shared: Serving) -> list[bytes]:
    return [encode_entry(entry) for entry in RunFolder(shared.store / RUN).entries()]


def parsed(stream: bytes) -> list[tuple[str, str]]:
    """(event, id or data)"""
    found = []
    for block in stream.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        found.append((fields["event"], fields.get("id", fields["data"])))
    return found


def test_pages_of_any_size_make_the_same_table(shared: Serving) -> None:
    whole = [trial["trial"] for trial in shared.client().results(RUN)]
    assert whole == list(range(8))
    for limit in (1, 3, 8, 1000):
        cursor: int | None = 0
        found: list[int] = []
        while cursor is not None:
            page = json.loads(shared.ask("GET", f"/v1/runs/{RUN}/results?limit={limit}&cursor={cursor}")[1])
            assert len(page["items"]) <= limit
            found += [trial["trial"] for trial in page["items"]]
            cursor = page["next"]
        assert found == whole


def test_runs_are_listed_page_by_page(unstarted: Serving) -> None:
    serving = unstarted
    serving.start("--max-concurrent-runs", "0")
    names = [f"run {number}" for number in range(5)]
    for name in names:
        serving.client().submit(bag(name, 1))
    first = json.loads(serving.ask("GET", "/v1/runs?limit=2")[1])
    assert ([run["id"] for run in first["items"]], first["next"]) == (names[:2], "run 1")
    rest = json.loads(serving.ask("GET", "/v1/runs?limit=3&cursor=run%201")[1])
    assert ([run["id"] for run in rest["items"]], rest["next"]) == (names[2:], None)
    assert [run["id"] for run in serving.client().list()] == names


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_the_journal_can_be_read_from_any_entry(shared: Serving, data: st.DataObject) -> None:
    written = entries(shared)
    after = data.draw(st.integers(0, len(written) + 3))
    status, lines = shared.ask("GET", f"/v1/runs/{RUN}/journal?after={after}")
    assert (status, lines.splitlines()) == (200, written[after:])
    assert all(decode_entry(line).seq > after for line in lines.splitlines())


def test_a_stream_sends_every_entry_then_the_status_then_the_end(shared: Serving) -> None:
    told = parsed(shared.ask("GET", f"/v1/runs/{RUN}/events")[1])
    numbers = [number for kind, number in told if kind == "entry"]
    assert numbers == [str(number) for number in range(1, len(entries(shared)) + 1)]
    assert [kind for kind, _ in told if kind != "entry"] == ["status", "end"]
    assert json.loads(dict(told)["status"])["status"] == "completed"


def test_a_broken_stream_resumes_where_it_was(shared: Serving) -> None:
    last = len(entries(shared))
    known = {"Last-Event-ID": str(last - 3)}
    told = parsed(shared.ask("GET", f"/v1/runs/{RUN}/events?after=2", headers=known)[1])
    assert [number for kind, number in told if kind == "entry"] == [str(last - 2), str(last - 1), str(last)]
    nothing_new = shared.ask("GET", f"/v1/runs/{RUN}/events?after={last}")[1]
    assert [kind for kind, _ in parsed(nothing_new)] == ["status", "end"]
    assert shared.ask("GET", f"/v1/runs/{RUN}/events", headers={"Last-Event-ID": "; drop"})[0] == 400


def test_watching_sees_a_run_happen_and_survives_a_restart_of_the_service(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("watched", 4, gated=True))
    seen: list[int] = []
    restarted = False
    for event in client.watch("watched"):
        if event.number is not None:
            seen.append(event.number)
        if not restarted and finished(serving, "watched") >= 1:
            restarted = True
            port = serving.port
            serving.kill()
            serving.start("--port", str(port))
            let_go(serving)
    assert restarted
    assert seen == list(range(1, client.get("watched")["progress"]["entries"] + 1)), "each once, in order"


def test_closed_streams_free_their_places(shared: Serving) -> None:
    shared.client().submit(bag("queued", 1))
    for _ in range(MAX_STREAMS + 10):
        watching = shared.client().watch("queued")
        next(watching)
        watching.close()
    assert next(shared.client().watch("queued")).kind == "status"


def test_streams_end_with_the_service(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("streamed", 2, gated=True))
    eventually(lambda: client.get("streamed")["status"] == "running")
    watching = client.watch("streamed")
    next(watching)
    assert serving.stop() == 0
    assert serving.left_behind() == []
