"""`shoestring submit`: submit a spec file to a service."""

from __future__ import annotations

from pathlib import Path

import click

from shoestring.cli.main import BAD_INPUT
from shoestring.cli.options import JSON
from shoestring.cli.output import echo, say_json


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--to", "url", metavar="URL", default="http://127.0.0.1:8765", show_default=True, help="Address of the service."
)
@click.option("--name", metavar="NAME", help="Name of the run.  [default: the file's name]")
@click.option("--simulate", is_flag=True, help="Simulate it in virtual time, free of charge.")
@click.option("--wait", is_flag=True, help="Wait until it ends; exit code 2 if it did not run to its end.")
@JSON
def command(file: Path, url: str, name: str | None, simulate: bool, wait: bool, as_json: bool) -> None:
    """Submit the .yaml or .toml spec FILE to a service (shoestring serve). The token comes from SHOESTRING_TOKEN.

    Commands and paths in it refer to the service's machine; the rows of a table are sent along. Submitting the same
    file again returns the same run.

    \b
      shoestring submit bag.yaml --wait
      shoestring submit bag.yaml --to https://runs.example.org
    """
    from shoestring.client import Client
    from shoestring.specs.build import kind_of
    from shoestring.specs.job_table import with_table
    from shoestring.specs.read_file import load_spec_file

    client = Client(url)
    fields = load_spec_file(file)
    spec = {"name": file.stem, "kind": kind_of(fields), **with_table(fields, file.parent)}
    if name:
        spec["name"] = name
    run = client.submit(spec, mode="simulate" if simulate else "run")
    if wait:
        run = client.wait(run["id"])
    if as_json:
        say_json(run)
    else:
        progress = f" · {run['progress']['line']}" if run["progress"] else ""
        echo(f"{run['id']}: {run['status']}{progress}")
        if run["trouble"]:
            echo(f"  {run['trouble']}")
    if wait and run["phase"] != "concluded":
        raise click.exceptions.Exit(BAD_INPUT)
