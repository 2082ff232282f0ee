"""The option `lifetimes`: what is known of a kind of machine, or a model made by `shoestring lifetimes fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.pinned_file import FileOption

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import Lives

OPTION, KNOWN = "lifetimes", "known"
LIFETIMES_FILE = FileOption(OPTION, (KNOWN,), "lifetime model", "shoestring lifetimes fit")


def known_lives(options: Options) -> Lives:
    """Who lives how long."""
    from shoestring.models.lifetimes.saved import decoded
    from shoestring.models.lifetimes.source import Lives

    named = options.text(OPTION, KNOWN)
    return Lives() if named == KNOWN else Lives(decoded(*LIFETIMES_FILE.read(named)))
