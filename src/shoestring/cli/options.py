"""Options that several commands share, and the words in which they speak of themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

STORE = click.option("--store", metavar="DIR", help="The folder of all runs.  [default: ./.shoestring]")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
NAME = click.argument("name", required=False)
SPEEDUP = click.option("--speedup", type=float, help="Market seconds per real second: 900 is an hour in 4 s.")
PLACE = click.option(
    "--on",
    metavar="PLACE",
    help="local: processes of this machine, for nothing unless a market is named; ray: Ray nodes on this machine; "
    "ray:ADDRESS: a Ray cluster; slurm or slurm:PARTITION: nodes of a Slurm cluster.",
)

_OF_ALL_RUNS = (
    click.option("--budget", metavar="USD", help="The most it may cost, e.g. 20 or '$20'."),
    click.option("--deadline", metavar="TIME", help="When everything must be over, e.g. 6h or 90m."),
    click.option("--max-steps", type=int, help="How far a trial goes at most."),
    click.option("--seed", type=int, help="The same seed makes the same choices."),
    click.option("--max-machines", type=int, help="How many machines to hold at once, at most."),
    click.option("--market", metavar="MARKET", help="modern, auction, preemptible, or the path of a price file."),
    click.option("--provider", metavar="NAME", help="Whose machines: aws or gcp."),
    click.option("--machines", metavar="NAMES", help="Machine types, separated by commas."),
    click.option("--zones", metavar="NAMES", help="Zones, separated by commas."),
    click.option("--fresh", is_flag=True, default=None, help="Move an earlier run of this name aside."),
)
_OF_FILES = (
    click.option("--trials", type=int, help="How many configurations to try."),
    click.option("--recipe", metavar="NAME", help="How to search and where to run, e.g. asha, hyperband, random."),
    click.option("--name", "name", metavar="NAME", help="The run's name.  [default: that of the file]"),
)


def run_options(command: F) -> F:
    """What can be said at the prompt about a run, overriding its file."""
    return common_options(_added(command, _OF_FILES))


def common_options(command: F) -> F:
    """What can be said about any run."""
    return STORE(_added(command, _OF_ALL_RUNS))


def _added(command: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):
        command = option(command)
    return command


def overrides(options: dict[str, Any]) -> dict[str, object]:
    """The options that were given, with lists split."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("machines", "zones"):
        if name in given:
            given[name] = [word.strip() for word in str(given[name]).split(",") if word.strip()]
    return given
