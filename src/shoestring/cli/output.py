"""What commands print: results, and what to type next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shoestring.study import Study


def say_json(plain: object) -> None:
    from shoestring.export import to_json

    click.echo(to_json(plain))


def next_commands(*commands: str) -> None:
    """The useful commands after this one."""
    click.echo(f"next: {' · '.join(commands)}")


def show_study(study: Study) -> None:
    """The outcome for people: best trial, then the receipt."""
    best = study.best
    click.echo("no trial has reported a value" if best is None else f"best  {best}")
    click.echo("")
    click.echo(str(study.receipt))


def about(study: Study, store: str | None) -> str:
    """How to name this run in another command."""
    place = f" --store {shlex.quote(store)}" if store else ""
    return f"{shlex.quote(study.name if study.folder is None else study.folder.name)}{place}"
