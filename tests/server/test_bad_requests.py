"""Any bad request gets a message and never a traceback; and nothing but commands is ever executed."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from shoestring.server.limits import HEAD_TIMEOUT_S, MAX_BODY_BYTES
from shoestring.server.tokens import FILE
from shoestring.testing.slowness import PATIENCE_S
from tests.server.serving import Serving

GOOD = {"name": "good", "command": "true", "over": {"x": [1]}}
PRICED_BY_A_COMMAND = {"label": "x", "spot": True, "price_command": "id", "list_usd_per_hour": 1}


def post(shared: Serving, spec: object, **more: object) -> tuple[int, dict[str, str]]:
    status, answer = shared.ask("POST", "/v1/runs", json.dumps({"spec": spec, **more}).encode())
    return status, json.loads(answer)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe\x00",
        b'{"spec": {}, "spec": 1}',
        b'{"mode": "run"}',
        b'{"spec": {"name": 3}}',
        b'{"spec": {}, "mode": "shell"}',
        b'{"spec": {}, "pickle": "gASVKAAAAA"}',
        b'{"spec": {"comand": "true"}}',
        b'{"spec": {"store": "/etc"}}',
        b'{"spec": {"fresh": true}}',
        b'{"spec": {"listings": []}}',
        b"[" * 100_000,
        b'{"spec":' * 50_000,
        b'{"spec": {"space": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}}",
        b'{"spec": {"trials": 1e400}}',
        b'{"spec": {"seed": 123456789012345678901234567890}}',
    ],
    ids=lambda body: body[:24].decode("latin-1"),
)
def test_invalid_bodies_are_refused(shared: Serving, body: bytes) -> None:
    status, answer = shared.ask("POST", "/v1/runs", body)
    assert status in (400, 422), answer
    assert json.loads(answer)["error"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "a metric|empty|nothing"),
        ({"name": "x", "over": {"x": [1]}}, "nothing to run"),
        ({**GOOD, "command": "no-such-program-anywhere"}, "there is no program"),
        ({**GOOD, "on": "inline"}, "in the service"),
        ({**GOOD, "on": "moon"}, "unknown"),
        ({**GOOD, "recipe": "bake"}, "bake"),
        ({**GOOD, "budget": "lots"}, "budget"),
        ({**GOOD, "market": "/etc/passwd"}, "market|prices|passwd"),
        ({**GOOD, "market": {"nodes": [PRICED_BY_A_COMMAND]}}, "runs no price_command"),
        ({**GOOD, "over": {"x": list(range(1000)), "y": list(range(1000))}}, "more than 100,000 jobs"),
        ({**GOOD, "command": "true; touch pwned"}, "no program|without a shell"),
        ({**GOOD, "command": "true && touch pwned"}, "without a shell"),
        ({**GOOD, "function": "os:system"}, "both command and function"),
    ],
)
def test_impossible_specs_get_the_same_message_as_on_the_command_line(
    shared: Serving, spec: dict[str, object], words: str
) -> None:
    status, answer = post(shared, spec)
    assert status == 422
    assert any(word in answer["error"] for word in words.split("|")), answer


def test_a_run_cannot_have_the_name_of_a_file_of_the_service(shared: Serving) -> None:
    (shared.store / "notes.txt").write_text("beside the runs")
    for name in (FILE, "service.lock", "notes.txt"):
        status, answer = post(shared, {**GOOD, "name": name})
        assert (status, answer["hint"]) == (422, "choose another name")
        assert str(shared.store) not in answer["error"]


TRAVERSALS = ("..", "../x", "/etc/passwd", "a/b", ".hidden", "a\0b", "", "x" * 101, "-rf", "a\nb", "café", "~root")


@pytest.mark.parametrize("name", TRAVERSALS)
def test_names_cannot_leave_the_store(shared: Serving, name: str) -> None:
    assert post(shared, {**GOOD, "name": name})[0] in (400, 422)
    assert post(shared, {**GOOD, "name": name}, mode="simulate")[0] in (400, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs/..",
        "/v1/runs/../../../etc/passwd",
        "/v1/runs/..%2f..%2ftokens.json",
        "/v1/runs/%2e%2e",
        "/v1/runs/%2e%2e%2ftokens.json/journal",
        "/v1/runs/tokens.json",
        "/v1/runs/tokens.json/journal",
        "/v1/runs/%00",
        "/v1/runs/a%0d%0aSet-Cookie:x",
        "/v1/runs/%ff%fe",
        "/v1/runs/nothing/receipt",
        "/v1/runs/study-simulated/trials/-1",
        "/v1/runs/study-simulated/trials/99999999999999999999",
        "/v1/runs/study-simulated/trials/%D9%A3",
        "/v1/runs/study-simulated/trials/8/why",
        "/v1/runs/study-simulated/checkpoints",
    ],
)
def test_paths_cannot_leave_the_store(shared: Serving, path: str) -> None:
    status, answer = shared.ask("GET", path)
    assert status == 404, answer
    assert b"sha256" not in answer


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "cursor=-1", "more=1", "limit=1&limit=2", "limit=1e99", "cursor="]
)
def test_queries_have_limits(shared: Serving, query: str) -> None:
    assert shared.ask("GET", f"/v1/runs/study-simulated/results?{query}")[0] == 400


def test_bodies_have_a_size_limit_with_and_without_a_content_length(shared: Serving) -> None:
    large = str(10 * MAX_BODY_BYTES)
    assert shared.ask("POST", "/v1/runs", b"{", headers={"Content-Length": large})[0] == 413
    with socket.create_connection(("127.0.0.1", shared.port), timeout=PATIENCE_S) as line:
        head = f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared.token}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(2 * MAX_BODY_BYTES // 0x100000):
                line.sendall(chunk)
        except ConnectionError:
            pass  # it has heard enough
        assert b" 413 " in line.recv(64)


def test_heads_have_a_size_limit(shared: Serving) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=PATIENCE_S) as line:
        line.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n")
        try:
            for _ in range(100):
                line.sendall(b"X-More: " + b"x" * 4000 + b"\r\n")
            assert b" 431 " in line.recv(64)
        except ConnectionError:
            pass  # it has heard enough
    assert shared.answers()


@pytest.mark.heavy
def test_an_incomplete_head_times_out(shared: Serving) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=3 * HEAD_TIMEOUT_S) as line:
        line.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n")
        assert b" 408 " in line.recv(64)


def test_only_json_is_accepted(shared: Serving) -> None:
    body = json.dumps({"spec": GOOD}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/x-pickle"):
        assert shared.ask("POST", "/v1/runs", body, headers={"Content-Type": kind})[0] == 415


def test_other_methods_are_not_allowed(shared: Serving) -> None:
    for method in ("PUT", "DELETE", "PATCH", "TRACE"):
        assert shared.ask(method, "/v1/runs/study-simulated")[0] == 405


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/runs", "GET, HEAD, POST"),
        ("/v1/runs/study-simulated", "GET, HEAD"),
        ("/v1/runs/study-simulated/cancel", "POST"),
        ("/openapi.json", "GET, HEAD"),
    ],
)
def test_a_method_that_is_not_allowed_is_answered_with_those_that_are(shared: Serving, path: str, allowed: str) -> None:
    head, body = raw(
        shared, f"PATCH {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {shared.token}\r\nConnection: close\r\n\r\n"
    )
    assert b" 405 " in head
    assert f"allow: {allowed}\r\n".encode() in head + b"\r\n"
    assert json.loads(body)["error"]


@pytest.mark.parametrize(
    "request_", ["nonsense\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_what_is_not_http_is_refused_in_json_too(shared: Serving, request_: str) -> None:
    head, body = raw(shared, request_)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert json.loads(body)["error"]


def raw(shared: Serving, request: str) -> tuple[bytes, bytes]:
    """Head and body of the answer."""
    with socket.create_connection(("127.0.0.1", shared.port), timeout=PATIENCE_S) as line:
        line.sendall(request.encode())
        answer = b""
        while some := line.recv(1 << 16):
            answer += some
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


def test_shell_metacharacters_are_plain_text(serving: Serving) -> None:
    values = [
        "; touch pwned",
        "$(touch pwned)",
        "`touch pwned`",
        "| touch pwned",
        "&& touch pwned",
        "> pwned",
        "\n",
        "'\"",
    ]
    client = serving.client()
    client.submit({"name": "plain", "command": ["echo", "{x}", "; touch pwned", "$HOME"], "over": {"x": values}})
    assert client.wait("plain", timeout_s=PATIENCE_S)["progress"]["by_status"] == {"finished": len(values)}
    logs = "".join(path.read_text() for path in (serving.store / "plain" / "segments").glob("*/log.txt"))
    assert all(f"{value} ; touch pwned $HOME" in logs for value in values)
    assert not list(serving.folder.rglob("pwned"))


def test_import_paths_are_not_imported_by_the_service(serving: Serving) -> None:
    Path(serving.folder / "loud.py").write_text("import os\nopen(f'loaded-{os.getpid()}', 'w')\ndef job(trial): pass\n")
    client = serving.client()
    client.submit({"name": "loud", "kind": "bag", "function": "loud.py:job", "given": [{"x": 1}]})
    client.wait("loud", timeout_s=PATIENCE_S)
    loaded = {path.name for path in serving.folder.glob("loaded-*")}
    assert loaded, "somebody did load it: the worker"
    assert serving.process is not None
    assert f"loaded-{serving.process.pid}" not in loaded
