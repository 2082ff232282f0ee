"""`shoestring serve`: the HTTP service, and its access tokens."""

from __future__ import annotations

import time
from pathlib import Path

import click

from shoestring.cli.options import STORE
from shoestring.cli.output import echo


@click.group(invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on. There is no TLS.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free port.")
@click.option(
    "--max-concurrent-runs",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Runs that may run at the same time; the others are queued.",
)
@click.option("--at-once", type=click.IntRange(0), hidden=True)  # its former name
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="Working directory of submitted commands.  [default: here]",
)
@STORE
@click.pass_context
def command(
    ctx: click.Context,
    host: str,
    port: int,
    max_concurrent_runs: int,
    at_once: int | None,
    folder: Path,
    store: str | None,
) -> None:
    """Serve the runs of a folder over HTTP: submit, list, watch, cancel, fetch results. Ctrl-C pauses all runs; the
    next start resumes them. Anyone with a token can run any command as you.

    \b
      shoestring serve token add alice
      shoestring serve --max-concurrent-runs 4
      curl -H "Authorization: Bearer $SHOESTRING_TOKEN" http://127.0.0.1:8765/v1/runs
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = store
        return
    from shoestring.errors import need
    from shoestring.runs.folder import home

    for library in ("starlette", "uvicorn", "httptools"):
        need(library, extra="server")
    from shoestring.server.serve import serve

    serve(
        host=host,
        port=port,
        store=home(store).absolute(),
        folder=folder.resolve(),
        max_concurrent_runs=max_concurrent_runs if at_once is None else at_once,
    )


@command.group()
def token() -> None:
    """Manage access tokens. They are stored as hashes beside the runs; changes take effect immediately."""


def _file(own_store: str | None, group_store: str | None) -> Path:
    from shoestring.runs.folder import home
    from shoestring.server.tokens import FILE

    return home(own_store or group_store) / FILE


@token.command()
@click.argument("name")
@STORE
@click.pass_obj
def add(group_store: str | None, name: str, store: str | None) -> None:
    """Create the token NAME and print it: it cannot be shown again."""
    from shoestring.server.tokens import add_token

    echo(add_token(_file(store, group_store), name))


@token.command("list")
@STORE
@click.pass_obj
def list_(group_store: str | None, store: str | None) -> None:
    """List the names of all tokens, and when they were created."""
    from shoestring.server.tokens import read_tokens

    for known in read_tokens(_file(store, group_store)):
        echo(f"{known.name}  {time.strftime('%Y-%m-%d %H:%M', time.gmtime(known.made_at))} UTC")


@token.command()
@click.argument("name")
@STORE
@click.pass_obj
def revoke(group_store: str | None, name: str, store: str | None) -> None:
    """Revoke the token NAME, from the next request on."""
    from shoestring.server.tokens import revoke_token

    revoke_token(_file(store, group_store), name)
    echo(f"token {name} is revoked")
