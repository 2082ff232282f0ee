"""How a configuration reaches a program: in its arguments, in its environment, and in a JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from shoestring.kernel.types import Config, Value
from shoestring.worker.placeholders import PLACEHOLDER
from shoestring.worker.report import REPORTS


def fill(command: Sequence[str], config: Config, provided: Mapping[str, str]) -> list[str]:
    """The arguments with each {name} replaced, one by one, without a shell. {{ and }} are braces.

    The names were checked with the spec, so one that is neither a parameter of this trial nor provided is a conditional
    parameter that does not apply: it is replaced by nothing.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()[0]
        return as_text(config[name]) if name in config else provided.get(name, "")

    return [PLACEHOLDER.sub(value, argument) for argument in command]


def as_text(value: Value) -> str:
    """A value as programs in most languages read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


LAST_LINE = "last_line.txt"


class ProgramFiles:
    """The files through which a program gets its parameters, saves checkpoints and reports, and its last output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.save_to = folder / "save_to"
        self.params = folder / "params.json"
        self.reports = folder / "reports.jsonl"
        self.last_line = folder / LAST_LINE

    def create(self, config: Config) -> None:
        self.save_to.mkdir(parents=True, exist_ok=True)
        self.params.write_text(json.dumps(config))
        self.reports.touch()

    def provided(self, environment: Mapping[str, str]) -> dict[str, str]:
        """What a command may name in braces besides its parameters; see `placeholders.PROVIDED`."""
        return {
            "params": str(self.params),
            "checkpoint": environment.get("SHOESTRING_CHECKPOINT", ""),
            "save_to": str(self.save_to),
            "fraction": environment.get("SHOESTRING_FRACTION", "1.0"),
        }

    def environment(
        self,
        config: Config,
        *,
        checkpoint: Path | None,
        until_step: int | None,
        slots: int = 1,
        fraction: float = 1.0,
        fractions: Sequence[float] = (),
    ) -> dict[str, str]:
        return {
            **{f"SHOESTRING_PARAM_{name.upper()}": as_text(value) for name, value in config.items()},
            "SHOESTRING_PARAMS": str(self.params),
            "SHOESTRING_CHECKPOINT": "" if checkpoint is None else str(checkpoint),
            "SHOESTRING_SAVE_TO": str(self.save_to),
            "SHOESTRING_UNTIL_STEP": "" if until_step is None else str(until_step),
            "SHOESTRING_SLOTS": str(slots),
            "SHOESTRING_FRACTION": str(fraction),
            "SHOESTRING_FRACTIONS": " ".join(map(str, fractions)),
            REPORTS: str(self.reports),
        }
