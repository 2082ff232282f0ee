"""Markdown as the documentation uses it: fenced blocks, the comments that steer them, links and headings.

A document is run from top to bottom in one empty folder:

- A block whose first line is `# file: NAME` is written to that file, without this line.
- Any other ```python block is a program of its own and must succeed.
- A ```console block holds commands, `$ shoestring ...` or `$ python ...`, and what they print. Commands must succeed
  and print what is shown; a line `...` stands for any lines, and /home/you for the folder. `make`, `pip` and `git` are
  for people, and not run. A command under which nothing is shown may print anything.

A comment on the line before a block changes that: `<!-- not run: reason -->`, `<!-- exit 2 -->` (the last command ends
so), `<!-- output varies: reason -->` (real processes: run, but not compared).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\w*)\s*")
_COMMENT = re.compile(r"\s*<!-- (?P<text>.+?) -->\s*")
_FILE = re.compile(r"# file: (?P<name>\S.*)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass
class Command:
    line: str
    output: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    language: str
    lines: tuple[str, ...]
    at: int
    """The line of the document it begins in, from 1."""
    comment: str = ""

    @property
    def file(self) -> str | None:
        match = _FILE.fullmatch(self.lines[0]) if self.lines else None
        return match["name"] if match else None

    @property
    def text(self) -> str:
        return "\n".join(self.lines if self.file is None else self.lines[1:]) + "\n"

    @property
    def runs(self) -> bool:
        return not self.comment.startswith("not run: ")

    @property
    def exit_code(self) -> int:
        match = re.match(r"exit (\d+)", self.comment)
        return int(match[1]) if match else 0

    @property
    def varies(self) -> bool:
        return "output varies: " in self.comment

    def commands(self) -> list[Command]:
        found: list[Command] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append(Command(line.removeprefix("$ ")))
            elif found and found[-1].line.endswith("\\"):
                found[-1].line = f"{found[-1].line[:-1]} {line.removeprefix('>').strip()}"
            elif found:
                found[-1].output.append(line)
        return found


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    number, comment = 0, ""
    while number < len(lines):
        fence = _FENCE.fullmatch(lines[number])
        said = _COMMENT.fullmatch(lines[number])
        if fence is not None:
            end = lines.index(f"{fence['indent']}```", number + 1)
            body = tuple(line.removeprefix(fence["indent"]) for line in lines[number + 1 : end])
            found.append(Block(fence["language"], body, number + 1, comment))
            number = end
        comment = said["text"] if said else ""
        number += 1
    return found


def prose(path: Path) -> str:
    """The document without its blocks."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for block in reversed(blocks(path)):
        del lines[block.at - 1 : block.at + len(block.lines) + 1]
    return "\n".join(lines)


def links(path: Path) -> list[str]:
    return [match["target"] for match in _LINK.finditer(prose(path))]


def anchors(path: Path) -> set[str]:
    """What `#...` can point to: headings, the way forges name them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
