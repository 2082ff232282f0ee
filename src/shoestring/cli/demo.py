"""`shoestring demo`: half a minute that shows what this is."""

from __future__ import annotations

from pathlib import Path

import click

from shoestring.cli.options import STORE
from shoestring.cli.output import about, next_commands


@click.command(short_help="See it work: a real study on a market that takes machines away.")
@STORE
def command(store: str | None) -> None:
    """A real study on real processes, on a market in fast motion that takes machines away; then the same study,
    simulated at the size of a cloud. No account, no cost, about half a minute.
    """
    from shoestring.demo.demo import demo

    study = demo(click.echo, store)
    best = study.best
    example = "examples/digits.py" if Path("examples/digits.py").exists() else "FILE"
    next_commands(
        f"shoestring report {about(study, store)} --html report.html",
        f"shoestring why {0 if best is None else best.number} {about(study, store)}",
        f"shoestring run {example}",
        f"shoestring simulate {example} --budget 20 --deadline 6h",
    )
