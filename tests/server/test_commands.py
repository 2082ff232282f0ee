"""`shoestring serve` and `shoestring submit` on the command line."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shoestring.cli.main import cli
from shoestring.client import Client, ServiceError
from shoestring.errors import SpecError
from shoestring.server.serve import exposure
from shoestring.server.tokens import FILE, TokenStore
from tests.server.serving import Serving


def shoestring(*words: str, token: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(words), env={"SHOESTRING_TOKEN": token})


def test_tokens_are_created_listed_and_revoked(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path))
    secret = shoestring("serve", "token", "add", "alice", *store).output.strip()
    assert TokenStore(tmp_path / FILE).name_of(secret) == "alice"
    assert shoestring("serve", *store, "token", "list").output.startswith("alice  20")
    assert shoestring("serve", "token", "add", "alice", *store).exit_code == 2
    assert shoestring("serve", "token", "revoke", "alice", *store).exit_code == 0
    assert shoestring("serve", "token", "revoke", "alice", *store).exit_code == 2
    assert TokenStore(tmp_path / FILE).name_of(secret) is None


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = shoestring("serve", "--store", str(tmp_path))
    assert said.exit_code == 2
    assert "pip install 'shoestring[server]'" in said.output


def test_a_port_in_use_is_bad_input(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = shoestring("serve", "--port", str(taken.getsockname()[1]), "--store", str(tmp_path))
    assert said.exit_code == 2
    assert "cannot listen on 127.0.0.1" in said.output


def test_one_service_for_one_folder_of_runs(shared: Serving) -> None:
    said = shoestring("serve", "--port", "0", "--store", str(shared.store))
    assert said.exit_code == 2
    assert "another service serves" in said.output


def test_an_address_that_other_machines_can_reach_gives_a_warning() -> None:
    assert all("no TLS" in exposure(address) for address in ("0.0.0.0", "::", "192.168.1.7"))
    assert exposure("127.0.0.1") == exposure("::1") == ""


def test_a_file_is_submitted_and_waited_for(serving: Serving) -> None:
    spec = serving.folder / "three.yaml"
    spec.write_text("command: echo {x}\nover:\n  x: [1, 2, 3]\nbudget: 5\n")
    words = ("submit", str(spec), "--to", f"http://127.0.0.1:{serving.port}")
    done = shoestring(*words, "--wait", token=serving.token)
    assert (done.exit_code, done.output.startswith("three: completed · 3/3")) == (0, True), done.output
    again = shoestring(*words, "--json", token=serving.token)
    assert json.loads(again.output)["status"] == "completed"
    simulated = shoestring(*words, "--simulate", "--name", "other", token=serving.token)
    assert simulated.output.startswith("other-simulated: ")


def test_the_rows_of_a_table_beside_the_file_are_sent_along(serving: Serving, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("x\n1\n2\n")
    spec = tmp_path / "rows.yaml"
    spec.write_text("command: echo {x}\ntable: rows.csv\n")
    done = shoestring("submit", str(spec), "--to", f"http://127.0.0.1:{serving.port}", "--wait", token=serving.token)
    assert (done.exit_code, done.output.startswith("rows: completed · 2/2")) == (0, True), done.output


@pytest.mark.parametrize(
    ("token", "url", "words"),
    [
        (None, "http://127.0.0.1:1", "no token is given"),
        ("x", "http://127.0.0.1:1", "cannot be reached"),
        ("x", "file:///etc/passwd", "not the address of a service"),
    ],
)
def test_an_impossible_submission_gets_a_message(tmp_path: Path, token: str | None, url: str, words: str) -> None:
    spec = tmp_path / "one.yaml"
    spec.write_text("command: echo {x}\nover:\n  x: [1]\n")
    said = shoestring("submit", str(spec), "--to", url, token=token)
    assert said.exit_code == 2
    assert words in said.output


def test_the_client_raises_the_messages_of_the_service(shared: Serving) -> None:
    with pytest.raises(ServiceError, match="there is no run 'nobody'") as refused:
        shared.client().get("nobody")
    assert (refused.value.status, "GET /v1/runs" in refused.value.hint) == (404, True)
    with pytest.raises(ServiceError, match="a valid token is required"):
        Client(f"http://127.0.0.1:{shared.port}", "wrong").get("nobody")
    with pytest.raises(SpecError, match="not the address"):
        Client("ftp://example.org", "x")


def test_names_with_blanks_and_dots_work_in_urls(shared: Serving) -> None:
    run = shared.client().submit({"name": "my run v1.2", "command": "true", "over": {"x": [1]}})
    assert shared.client().get("my run v1.2")["id"] == run["id"] == "my run v1.2"
