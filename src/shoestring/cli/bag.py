"""`shoestring bag`: a command and a table of parameters, without a file to describe them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shoestring.cli.options import JSON, PLACE, SPEEDUP, common_options, overrides
from shoestring.cli.output import echo
from shoestring.cli.run import show_outcome


@click.command(
    context_settings={"allow_interspersed_args": False},  # options after the program's name belong to the program
)
@click.argument("command_line", nargs=-1, required=True, metavar="[--] COMMAND...")
@click.option(
    "--over",
    "values",
    multiple=True,
    metavar="NAME=VALUES",
    help="Values of a parameter: 280,300,320, or 0..99, or 0..100..10. Repeat it for all combinations.",
)
@click.option("--table", metavar="FILE", help="A job for each row of a .csv, .tsv or .jsonl file.")
@click.option(
    "--recipe", metavar="NAME", help="given: jobs in order; scispot: placed by machine lifetimes and job lengths."
)
@click.option("--gangs", metavar="COUNTS", help="With scispot: how many machines may share one job, e.g. 1,2,4.")
@click.option(
    "--cpus-per-job", type=int, metavar="N", help="With scispot: CPUs of a job; type and number of machines follow."
)
@click.option(
    "--launch",
    type=click.Choice(["each", "once"]),
    help="With --gangs: run COMMAND in each worker of a gang, or once, if it starts its own processes (mpirun).",
)
@click.option("--name", metavar="NAME", help="The bag's name.  [default: that of the program]")
@click.option("--slots", type=int, help="Slots of a machine that a job occupies.")
@click.option("--time-limit", metavar="TIME", help="A job that runs longer counts as hung.")
@click.option("--max-failures", type=int, help="How many failures a job may have before it counts as failed.")
@common_options
@PLACE
@SPEEDUP
@click.option("--simulate", "simulating", is_flag=True, help="Simulate cost and time. Nothing is run.")
@JSON
def command(
    command_line: tuple[str, ...],
    values: tuple[str, ...],
    gangs: str | None,
    cpus_per_job: int | None,
    simulating: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run COMMAND once for every row of a table, with {parameters} filled in. No shell sees the values.

    After an interruption, run the same command again to resume. shoestring status shows progress and the time left;
    shoestring stop ends the bag; shoestring export writes the results as a table.

    \b
      shoestring bag --over temp=280,300,320 --over seed=0..99 -- ./simulate --temp {temp} --seed {seed}
      shoestring bag --table params.csv -- python fit.py --lr {lr} --width {width}
      shoestring bag --over file=a.dat,b.dat -- bash -c 'gzip -c "$1" > "$1.gz"' _ {file}
      shoestring bag --over seed=0..999 --budget 20 --deadline 1d --market preemptible --recipe scispot \\
          --simulate --job-takes 40m -- ./simulate --seed {seed}
    """
    from shoestring.runs.cli_context import CliContext, cli_context
    from shoestring.runs.launch import begin

    fields = overrides(options)
    if values:
        fields["over"] = _over(values)
    sizes = {"gangs": gangs, "cpus_per_job": cpus_per_job}
    if given := {name: size for name, size in sizes.items() if size is not None}:
        fields["options"] = given
    context = CliContext(mode="simulate" if simulating else "run", say=lambda text: echo(text, err=True))
    with cli_context(context):
        # A single argument is a whole command line in quotes, split like a shell would.
        code = command_line[0] if len(command_line) == 1 else list(command_line)
        begin(code, fields, kind="bag", source="shoestring bag", folder=Path.cwd())
    show_outcome(context.studies, options["store"], as_json)


def _over(values: tuple[str, ...]) -> dict[str, object]:
    from shoestring.errors import SpecError
    from shoestring.specs.job_table import listed

    over: dict[str, object] = {}
    for option in values:
        name, equals, text = option.partition("=")
        if not equals:
            raise SpecError(f"--over {option!r} gives no values", hint="write it as --over temp=280,300 or seed=0..99")
        if name in over:
            raise SpecError(f"--over {name} is given twice", hint=f"list all its values at once: --over {name}=1,2,3")
        over[name] = listed(text, f"--over {name}")
    return over
