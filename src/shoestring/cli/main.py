"""`shoestring`: the group of commands, and what errors look like to people."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

import click

COMMANDS = (
    "demo",
    "plan",
    "run",
    "bag",
    "simulate",
    "status",
    "report",
    "why",
    "export",
    "stop",
    "serve",
    "submit",
    "tell",
    "market",
    "lifetimes",
)
"""In the order in which a newcomer meets them. Each has a module of its name in this package."""

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

HELP = """Tune hyper-parameters, or run bags of jobs, on cheap machines that may be taken away: never a cent over the
budget, never a minute past the deadline, and a receipt at the end.

\b
  shoestring demo                                   see it work, in half a minute
  shoestring plan study.py --budget 20 --deadline 6h          what will it cost, will it be done in time?
  shoestring run study.py                           on this machine, for nothing
  shoestring run study.py --market modern --speedup 900 --budget 20 --deadline 6h
  shoestring bag --over seed=0..99 -- ./simulate --seed {seed}          a job for each of a hundred seeds
  shoestring simulate study.py --budget 20 --deadline 6h --max-machines 64
  shoestring status                                 how is it going?
  shoestring report --html report.html              results and receipt
  shoestring why 7                                  what happened to trial 7, and why

Runs live in ./.shoestring/NAME (elsewhere with --store or SHOESTRING_HOME). Interrupted by Ctrl-C or kill -9, the same
command goes on where it was. A NAME left out means the run that was active last.

\b
Exit codes
    0  all is well
    1  a fault of shoestring or of a policy: the run is parked, nothing on record is lost
    2  bad input, or a run that came to no result because of it: a sentence says what, and the way out
  130  interrupted: paused and saved, the same command goes on
"""


class Shoestring(click.Group):
    """Loads a command when it is named, and turns errors into sentences."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"shoestring.cli.{name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except Exception as error:
            ctx.exit(explain_error(error))


def explain_error(error: Exception) -> int:
    """Say what went wrong, in words; returns the exit code."""
    from shoestring.errors import PolicyError, ShoestringError

    if os.environ.get("SHOESTRING_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, ShoestringError):
        click.echo(f"shoestring: {error}", err=True)
        if error.hint:
            click.echo(f"  {error.hint}", err=True)
        return FAILED if isinstance(error, PolicyError) else BAD_INPUT
    click.echo(f"shoestring: sorry, this should not have happened: {type(error).__name__}: {error}", err=True)
    click.echo("  nothing on record is lost; SHOESTRING_DEBUG=1 shows where it happened", err=True)
    return FAILED


@click.group(cls=Shoestring, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shoestring", prog_name="shoestring")
def cli() -> None:
    pass


def main(args: list[str] | None = None) -> NoReturn:
    sys.exit(cli.main(args, prog_name="shoestring"))
