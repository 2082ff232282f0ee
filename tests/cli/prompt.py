"""The command line, called in a temporary folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from shoestring.cli.main import cli
from shoestring.testing.slowness import PATIENCE_S

TRAIN = """
def train(trial):
    x = float((trial.checkpoint / "x").read_text()) if trial.checkpoint else 1.0
    for step in trial.steps():
        x *= 0.8
        trial.report(loss=x + abs(trial["lr"] - 0.3))
        with trial.save() as folder:
            if folder:
                (folder / "x").write_text(str(x))
"""


class Prompt:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(cli, list(words), prog_name="shoestring")

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def study(self, **changes: str) -> str:
        """A study file, with arguments of tune() added or replaced."""
        arguments = {
            "space": '{"lr": ss.uniform(0, 1)}',
            "minimize": '"loss"',
            "trials": "4",
            "max_steps": "4",
            "on": '"inline"',
        } | {name: text for name, text in changes.items() if name != "train"}
        call = ", ".join(f"{name}={text}" for name, text in arguments.items())
        body = changes.get("train", TRAIN)
        return self.write("study.py", f"import shoestring as ss\n{body}\nss.tune(train, {call})\n")


def until(happened: Callable[[], bool]) -> None:
    """Returns once it has happened."""
    patience = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < patience, "it has not happened, and never will"
        time.sleep(0.05)


def refused(result: Result, *words: str, code: int = 2) -> None:
    """Ended with a message that contains these words, and without a traceback."""
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert "shoestring:" in result.output or "Usage:" in result.output
    for word in words:
        assert word in result.output, result.output
