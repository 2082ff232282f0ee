"""Every request needs a token; and secrets stay out of every file."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from typing import Any
from unittest.mock import AsyncMock

import pytest

from shoestring.errors import SpecError, StorageError
from shoestring.server.app import make_app
from shoestring.server.http_limits import ADMIT
from shoestring.server.limits import MAX_CONNECTIONS
from shoestring.server.tokens import FILE, TokenStore, add_token, read_tokens, revoke_token
from shoestring.testing.slowness import PATIENCE_S
from tests.server.serving import Serving

PATHS = (
    ("GET", "/v1/runs"),
    ("POST", "/v1/runs"),
    ("GET", "/v1/runs/study-simulated"),
    ("POST", "/v1/runs/study-simulated/cancel"),
    ("GET", "/v1/runs/study-simulated/journal"),
    ("GET", "/v1/runs/study-simulated/events"),
    ("POST", "/v1/callbacks/slurm"),
    ("GET", "/openapi.json"),
    ("GET", "/nothing/there"),
)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_without_a_token_nothing_is_revealed(shared: Serving, method: str, path: str) -> None:
    for headers in (
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {shared.token}"},
        {"Authorization": f"Bearer {shared.token}x"},
        {"Authorization": f"Bearer {shared.token[:-1]}"},
        {"Authorization": "Bearer \xff\xfe"},
    ):
        status, answer = shared.ask(method, path, token=None, headers=headers)
        assert (status, b"a valid token is required" in answer) == (401, True), headers


def test_a_token_in_the_query_is_no_token(shared: Serving) -> None:
    assert shared.ask("GET", f"/v1/runs?token={shared.token}", token=None)[0] == 401


def test_health_needs_no_token_and_reveals_nothing(shared: Serving) -> None:
    assert shared.ask("GET", "/v1/health", token=None) == (200, b'{"ok":true}')


def test_idle_connections_without_a_token_keep_no_token_holder_out(shared: Serving) -> None:
    idle = [socket.create_connection(("127.0.0.1", shared.port)) for _ in range(MAX_CONNECTIONS + 20)]
    try:
        begun = [line.send(b"GET /v1/runs HTTP/1.1\r\n") for line in idle[-10:]]
        assert all(begun)
        for _ in range(3):
            assert shared.ask("GET", "/v1/runs")[0] == 200
    finally:
        for line in idle:
            line.close()


def test_more_connections_with_a_token_than_allowed_are_refused_in_json(tmp_path) -> None:
    secret = add_token(tmp_path / FILE, "alice")
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/runs",
        "headers": [(b"authorization", f"Bearer {secret}".encode())],
        "extensions": {ADMIT: lambda: False},
    }
    asyncio.run(make_app(tmp_path, tmp_path, 1)(scope, AsyncMock(), send))  # type: ignore[arg-type]
    start, body = sent
    assert start["status"] == 503
    assert json.loads(body["body"])["error"] == f"{MAX_CONNECTIONS} connections are open already"


def test_tokens_are_valid_from_creation_to_revocation(shared: Serving) -> None:
    file = shared.store / FILE
    secret = add_token(file, "for-a-while")
    assert shared.ask("GET", "/v1/runs", token=secret)[0] == 200
    revoke_token(file, "for-a-while")
    assert shared.ask("GET", "/v1/runs", token=secret)[0] == 401
    assert shared.ask("GET", "/v1/runs")[0] == 200


def test_the_token_is_in_no_file_and_no_process(shared: Serving) -> None:
    shared.ask("GET", f"/v1/runs/{shared.token}")
    shared.ask("POST", "/v1/runs", b"not json " + shared.token.encode())
    files = [path for path in shared.folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if shared.token.encode() in path.read_bytes()]
    assert shared.process is not None
    with open(f"/proc/{shared.process.pid}/cmdline", "rb") as words:
        assert shared.token.encode() not in words.read()


def test_jobs_do_not_inherit_the_token(serving: Serving) -> None:
    client = serving.client()
    client.submit({"name": "env", "command": ["env"], "kind": "bag", "given": [{"x": 1}]})
    client.wait("env", timeout_s=PATIENCE_S)
    (log,) = (serving.store / "env" / "segments").glob("*/log.txt")
    assert "SHOESTRING_" in log.read_text(), "it did print its environment"
    assert serving.token not in log.read_text()


def test_only_the_owner_can_read_the_token_file(tmp_path) -> None:
    file = tmp_path / "new" / FILE
    secret = add_token(file, "alice")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret.encode() not in file.read_bytes()
    assert len(secret) >= 43
    os.chmod(file, 0o640)
    with pytest.raises(StorageError, match="open to others"):
        read_tokens(file)
    assert TokenStore(file).name_of(secret) is None, "a list others may have written lets nobody in"
    os.chmod(file, 0o600)
    assert TokenStore(file).name_of(secret) == "alice"


def test_names_of_tokens_are_plain_and_used_once(tmp_path) -> None:
    file = tmp_path / FILE
    first = add_token(file, "alice")
    assert add_token(file, "bob") != first
    for name in ("alice", "", "../x", "a b", "x" * 65):
        with pytest.raises(SpecError):
            add_token(file, name)
    with pytest.raises(SpecError, match="no token 'carol'"):
        revoke_token(file, "carol")
