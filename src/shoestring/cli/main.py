"""`shoestring`: the group of commands, and how errors are shown."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

COMMANDS = {
    "demo": "See it work: a real study on preemptible machines.",
    "plan": "Forecast cost, time and the risk of missing the deadline.",
    "run": "Run or resume a study.",
    "bag": "Run a command for every row of a table, or resume it.",
    "simulate": "Simulate a study in virtual time, free of charge.",
    "recipes": "List the recipes: search and placement by name.",
    "status": "Progress, cost and time of each run, one line each.",
    "report": "Show results and receipt, or write an HTML report.",
    "why": "Explain a trial: when and why it was promoted, moved, preempted, pruned.",
    "export": "Write trials or results as CSV, JSON or parquet.",
    "stop": "Stop a run for good: save trials, release machines.",
    "serve": "Submit, watch and cancel runs over HTTP.",
    "submit": "Submit a spec file to a service.",
    "report-metric": "Report metrics from inside a trial's program.",
    "market": "How likely is a preemption? Fit, show and evaluate models on prices.",
    "lifetimes": "How long until preemption? Fit, show and evaluate lifetime models.",
}
"""In the order in which a newcomer meets them. Each has a module of its name in this package, which help does not need
to import."""

FORMER = {"tell": "report-metric"}
"""Former names of commands: still accepted, not shown in help."""

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

HELP = """Tune hyperparameters, or run bags of jobs, on cheap spot instances that can be preempted. Budget and deadline
are hard: never a cent more, never a minute later. Preempted trials resume from their checkpoints.

\b
  shoestring demo                                   see it work in half a minute
  shoestring plan study.py --budget 20 --deadline 6h          forecast cost and time
  shoestring run study.py                           on this machine, free of charge
  shoestring run study.py --market modern --speedup 900 --budget 20 --deadline 6h
  shoestring bag --over seed=0..99 -- ./simulate --seed {seed}          one job per seed
  shoestring simulate study.py --budget 20 --deadline 6h --max-machines 64
  shoestring status                                 progress of all runs
  shoestring report --html report.html              results and receipt
  shoestring why 7                                  every decision about trial 7

Runs are stored in ./.shoestring/NAME (elsewhere with --store or SHOESTRING_HOME). After Ctrl-C or kill -9, run the same
command again to resume. Without a NAME, commands use the most recently active run.

\b
Exit codes
    0  success
    1  a bug in shoestring or in a policy: the run has failed, nothing on record is lost
    2  bad input, or a run that ended without a result: the message says what is wrong and how to fix it
  130  interrupted: trials are saved, the run is paused; the same command resumes it
"""


class Shoestring(click.Group):
    """Imports a command on first use, and prints errors as a sentence and a hint."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        name = FORMER.get(name, name)
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"shoestring.cli.{name.replace('-', '_')}").command
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
    """Print the error and its hint; returns the exit code."""
    from shoestring.cli.output import echo
    from shoestring.errors import PolicyError, ShoestringError

    if os.environ.get("SHOESTRING_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, ShoestringError):
        echo(f"shoestring: {error}", err=True)
        if error.hint:
            echo(f"  {error.hint}", err=True)
        return FAILED if isinstance(error, PolicyError) else BAD_INPUT
    echo(f"shoestring: sorry, this should not have happened: {type(error).__name__}: {error}", err=True)
    echo("  nothing on record is lost; SHOESTRING_DEBUG=1 shows where it happened", err=True)
    return FAILED


@click.group(cls=Shoestring, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shoestring", prog_name="shoestring")
def cli() -> None:
    pass


def main(args: list[str] | None = None) -> NoReturn:
    sys.exit(cli.main(args, prog_name="shoestring"))
