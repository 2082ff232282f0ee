"""`shoestring recipes`: every recipe by name, with one line about it."""

from __future__ import annotations

import click

from shoestring.cli.options import JSON
from shoestring.cli.output import aligned, echo, say_json


@click.command()
@JSON
def command(as_json: bool) -> None:
    """List the recipes that `--recipe` and `recipe=` accept, those of installed packages too.

    Reference implementations follow a paper to the letter. They are for comparison: where we have a recipe of the same
    name without _as_printed, use that one.
    """
    from shoestring.recipes import describe

    known = describe()
    if as_json:
        say_json([recipe._asdict() for recipe in known])
        return
    lines = aligned([(recipe.name, recipe.summary) for recipe in known], to_the_left=2)
    for title, reference in (("", False), ("\nreference implementations of papers, for comparison", True)):
        if title:
            echo(title)
        for recipe, line in zip(known, lines, strict=True):
            if recipe.reference is reference:
                echo(line)
