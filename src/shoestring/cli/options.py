"""Options that several commands share, and the words in which they speak of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

STORE = click.option("--store", metavar="DIR", help="The folder of all runs.  [default: ./.shoestring]")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
NAME = click.argument("name", required=False)

_RUN_OPTIONS = (
    click.option("--budget", metavar="USD", help="The most it may cost, e.g. 20 or '$20'."),
    click.option("--deadline", metavar="TIME", help="When everything must be over, e.g. 6h or 90m."),
    click.option("--trials", type=int, help="How many configurations to try."),
    click.option("--max-steps", type=int, help="How far a trial goes at most."),
    click.option("--recipe", metavar="NAME", help="How to search and where to run, e.g. asha, hyperband, random."),
    click.option("--seed", type=int, help="The same seed makes the same choices."),
    click.option("--max-machines", type=int, help="How many machines to hold at once, at most."),
    click.option("--market", metavar="MARKET", help="modern, auction, or the path of a price file."),
    click.option("--provider", metavar="NAME", help="Whose machines: aws or gcp."),
    click.option("--machines", metavar="NAMES", help="Machine types, separated by commas."),
    click.option("--zones", metavar="NAMES", help="Zones, separated by commas."),
    click.option("--name", "name", metavar="NAME", help="The run's name.  [default: that of the file]"),
    click.option("--fresh", is_flag=True, default=None, help="Move an earlier run of this name aside."),
)


def run_options(command: F) -> F:
    """What can be said at the prompt about a run, overriding its file."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return STORE(command)


def overrides(options: dict[str, Any]) -> dict[str, object]:
    """The options that were given, with lists split."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("machines", "zones"):
        if name in given:
            given[name] = [word.strip() for word in str(given[name]).split(",") if word.strip()]
    return given
