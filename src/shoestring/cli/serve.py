"""`shoestring serve`: runs over HTTP, and the tokens that open the door."""

from __future__ import annotations

import time
from pathlib import Path

import click

from shoestring.cli.options import STORE


@click.group(short_help="Submit, watch and cancel runs over HTTP.", invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen. Others: there is no TLS.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any that is free.")
@click.option("--at-once", type=click.IntRange(0), default=2, show_default=True, help="Runs going at a time.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    help="Where submitted commands run.  [default: here]",
)
@STORE
@click.pass_context
def command(ctx: click.Context, host: str, port: int, at_once: int, folder: Path, store: str | None) -> None:
    """Serve the runs of a folder over HTTP: submit, list, watch, cancel, fetch. Ctrl-C pauses them all; started again,
    it goes on with each. Whoever has a token may run any command as you.

    \b
      shoestring serve token add alice
      shoestring serve --at-once 4
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

    serve(host=host, port=port, store=home(store).absolute(), folder=folder.resolve(), at_once=at_once)


@command.group()
def token() -> None:
    """Who may enter. Tokens are kept as hashes, beside the runs; changes count at once."""


def _file(here: str | None, above: str | None) -> Path:
    from shoestring.runs.folder import home
    from shoestring.server.tokens import FILE

    return home(here or above) / FILE


@token.command()
@click.argument("name")
@STORE
@click.pass_obj
def add(above: str | None, name: str, store: str | None) -> None:
    """Make the token NAME and print it: it cannot be shown again."""
    from shoestring.server.tokens import add_token

    click.echo(add_token(_file(store, above), name))


@token.command("list")
@STORE
@click.pass_obj
def list_(above: str | None, store: str | None) -> None:
    """The names of all tokens, and when they were made."""
    from shoestring.server.tokens import read_tokens

    for known in read_tokens(_file(store, above)):
        click.echo(f"{known.name}  {time.strftime('%Y-%m-%d %H:%M', time.gmtime(known.made_at))} UTC")


@token.command()
@click.argument("name")
@STORE
@click.pass_obj
def revoke(above: str | None, name: str, store: str | None) -> None:
    """The token NAME opens nothing any more, from the next request on."""
    from shoestring.server.tokens import revoke_token

    revoke_token(_file(store, above), name)
    click.echo(f"{name} opens nothing any more")
