"""`shoestring report-metric`: report metrics from a shell program."""

from __future__ import annotations

import click


@click.command()
@click.argument("values", nargs=-1, required=True, metavar="step=N METRIC=VALUE...")
def command(values: tuple[str, ...]) -> None:
    """Report metrics of a step, from inside a program that shoestring runs.

    Printing the line {"step": 3, "loss": 0.2} does the same.

    \b
      shoestring report-metric step=3 loss=0.2 accuracy=0.91
    """
    from shoestring.errors import SpecError
    from shoestring.worker.report import report_from_shell

    numbers: dict[str, float] = {}
    for text in values:
        name, equals, value = text.partition("=")
        try:
            numbers[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise SpecError(
                f"{text!r} is not NAME=NUMBER", hint="for example: shoestring report-metric step=3 loss=0.2"
            )
    step = numbers.pop("step", None)
    if step is None or not step.is_integer() or not numbers:
        raise SpecError(
            "a report needs a whole step and a value", hint="for example: shoestring report-metric step=3 loss=0.2"
        )
    report_from_shell(int(step), numbers)
