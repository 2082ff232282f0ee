"""`shoestring demo`: a study on a simulated spot market, in half a minute."""

from __future__ import annotations

from pathlib import Path

import click

from shoestring.cli.options import STORE
from shoestring.cli.output import about, next_commands


@click.command()
@STORE
def command(store: str | None) -> None:
    """Tune a small network with real processes on a sped-up spot market that preempts machines; then simulate the same
    study on 64 machines. No account, free of charge, about half a minute; longer on a busy computer, for which the
    market is slowed down.
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
