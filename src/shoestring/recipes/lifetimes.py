"""The option `lifetimes`: what is known of a kind of machine, or a model made by `shoestring lifetimes fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.recipes.options import Options
from shoestring.recipes.pinned import FileOption

if TYPE_CHECKING:
    from shoestring.models.lives import Lives

OPTION, KNOWN = "lifetimes", "known"
LIFETIMES_FILE = FileOption(OPTION, (KNOWN,), "lifetime model", "shoestring lifetimes fit")


def known_lives(options: Options) -> Lives:
    """Who lives how long."""
    from shoestring.models.lifetime_saved import decoded
    from shoestring.models.lives import Lives

    named = options.text(OPTION, KNOWN)
    return Lives() if named == KNOWN else Lives(decoded(*LIFETIMES_FILE.read(named)))
