"""Doing what a document says, in a folder of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.markdown import Block, Command, blocks
from tests.docs.warm import LONGEST_S, Warm

RUN = ("shoestring", "python")
FOR_PEOPLE = ("make", "pip", "git", "cd")
YOUR_FOLDER = "/home/you"


class Done(NamedTuple):
    block: Block
    command: Command | None
    """None for a Python block."""
    exit_code: int
    expected_code: int
    printed: list[str]


def run(document: Path, folder: Path, warm: Warm | None = None) -> Iterator[Done]:
    """Every runnable part of a document, in order. The caller decides what to make of each. With `warm`,
    commands need not load the package first."""
    for block in blocks(document):
        if block.file is not None:
            target = folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif not block.runs:
            continue
        elif block.language == "python":
            script = folder / f"block_{block.at}.py"
            script.write_text(block.text, encoding="utf-8")
            code, printed = _execute(["python", script.name], folder, warm)
            yield Done(block, None, code, block.exit_code, printed)
        elif block.language == "console":
            yield from _commands(block, folder, warm)


def _commands(block: Block, folder: Path, warm: Warm | None) -> Iterator[Done]:
    commands = block.commands()
    assert commands, f"the console block of line {block.at} has no line that begins with $"
    for command in commands:
        program = command.line.split()[0]
        if program in FOR_PEOPLE:
            continue
        assert program in RUN, f"line {block.at}: {program!r} is not run here; mark the block <!-- not run: reason -->"
        words = shlex.split(command.line, comments=True)
        assert words[0] == program, f"line {block.at}: {command.line}"
        code, printed = _execute(words, folder, warm)
        yield Done(block, command, code, block.exit_code if command is commands[-1] else 0, printed)


def _execute(words: list[str], folder: Path, warm: Warm | None) -> tuple[int, list[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHOESTRING_")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    environment |= {"COLUMNS": "100", "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    if warm is not None and words[:2] != ["python", "-m"]:
        code, output = warm.run(words, folder, environment)
    else:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            executable=str(Path(sys.executable).parent / words[0]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        code, output = done.returncode, done.stdout
    printed = output.replace(str(folder), YOUR_FOLDER).rstrip("\n")
    return code, [line.rstrip() for line in printed.splitlines()]


def matches(shown: list[str], printed: list[str]) -> bool:
    """Is this what was printed? A line `...` stands for any lines."""
    wanted = [line.rstrip() for line in shown]
    while wanted and not wanted[-1]:
        wanted.pop()
    if not wanted:
        return True
    reachable = {0}
    for line in wanted:
        if line.strip() == "...":
            reachable = set(range(min(reachable), len(printed) + 1))
        else:
            reachable = {at + 1 for at in reachable if at < len(printed) and printed[at] == line}
        if not reachable:
            return False
    return len(printed) in reachable
