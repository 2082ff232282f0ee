"""A user's command: its arguments, and the {placeholders} in them.

Commands run without a shell, so no parameter value can be interpreted as shell code. A placeholder is a plain name in
braces; {{ and }} are braces themselves, and braces around anything else are left alone (`worker.arguments` fills in).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from shoestring.errors import SpecError

PATHS = ("params", "checkpoint", "save_to")
"""Placeholders that are no parameters: the file with all parameters, the checkpoint, the folder to save to."""
PROVIDED = (*PATHS, "fraction")
"""All that a command may name besides its parameters. A parameter called "fraction" overrides the trial's."""

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")
_SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"})


def read_command(plain: object) -> tuple[str, ...]:
    """The arguments of a command, given as one string or as a list."""
    if isinstance(plain, str):
        try:
            words = shlex.split(plain)
        except ValueError as error:
            raise SpecError(f"command={plain!r} cannot be split into words: {error}", hint="close the quotes") from None
        if shell := [word for word in words if word in _SHELL_WORDS]:
            raise SpecError(
                f"command={plain!r} has {shell[0]!r} in it, but commands run without a shell",
                hint="call the shell yourself, bash -c '...', or put the line into a script",
            )
    elif isinstance(plain, Sequence) and all(isinstance(word, str | int | float) for word in plain):
        words = [str(word) for word in plain]
    else:
        raise SpecError(f"command={plain!r} is not a command line", hint="write it as 'python train.py --lr {lr}'")
    if not words or not words[0] or any("\0" in word for word in words):
        raise SpecError(f"command={plain!r} names no program", hint="write it as 'python train.py --lr {lr}'")
    return tuple(words)


def written_placeholders(command: Sequence[str]) -> list[str]:
    """The names in braces, each once, in order."""
    return list(dict.fromkeys(name for word in command for name in PLACEHOLDER.findall(word) if name))
