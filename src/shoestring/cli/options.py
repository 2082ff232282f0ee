"""Options that several commands share, with their help texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

STORE = click.option("--store", metavar="DIR", help="Folder of all runs.  [default: ./.shoestring]")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
NAME = click.argument("name", required=False)
SPEEDUP = click.option("--speedup", type=float, help="Market seconds per real second: with 900 an hour passes in 4 s.")
PLACE = click.option(
    "--on",
    metavar="PLACE",
    help="local: processes on this machine, free of charge unless a market is named; ray: Ray nodes on this machine; "
    "ray:ADDRESS: a Ray cluster; slurm or slurm:PARTITION: nodes of a Slurm cluster.",
)

_OF_ALL_RUNS = (
    click.option("--budget", metavar="USD", help="Hard limit on the total cost, e.g. 20 or '$20'."),
    click.option("--deadline", metavar="TIME", help="Hard limit on the duration of the run, e.g. 6h or 90m."),
    click.option(
        "--max-steps", type=int, help="Steps (e.g. epochs) a trial trains at most; of a bag, the scale of its progress."
    ),
    click.option(
        "--job-takes", metavar="TIME", help="Of a bag: how long a job takes on four cores, used until one has finished."
    ),
    click.option("--seed", type=int, help="Random seed of the search and the simulated market."),
    click.option("--max-machines", type=int, help="The most machines rented at the same time, those on notice aside."),
    click.option(
        "--market",
        metavar="MARKET",
        help="modern, auction, preemptible or a price file: simulated. nodes.toml: nodes you have, at real prices.",
    ),
    click.option("--provider", metavar="NAME", help="Cloud provider: aws or gcp."),
    click.option("--machines", metavar="NAMES", help="Instance types, separated by commas."),
    click.option("--zones", metavar="NAMES", help="Availability zones, separated by commas."),
    click.option(
        "--interruptions-per-hour",
        type=float,
        metavar="N",
        help="How often a spot machine of a modern market or a price file is preempted.  [default: 0.02; files: 0]",
    ),
    click.option("--fresh", is_flag=True, default=None, help="Start over: move an earlier run of this name aside."),
)
_OF_FILES = (
    click.option("--trials", type=int, help="How many hyperparameter configurations to try."),
    click.option("--recipe", metavar="NAME", help="Search and placement policies, e.g. asha, hyperband, random."),
    click.option("--name", "name", metavar="NAME", help="Name of the run.  [default: the file's name]"),
)


def run_options(command: F) -> F:
    """Options that override the fields of a study file."""
    return common_options(_added(command, _OF_FILES))


def common_options(command: F) -> F:
    """Options of every command that starts a run."""
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
