"""The tree stays walkable: rooms with a role, one name for one thing, nothing that only tests use."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.source import PACKAGE, modules, text, tree

ROOT = Path(__file__).parents[2]
LOOSE = 12
"""Modules at the top of the package, at most: the four calls, and what has no better room."""
CROWD = 22
"""Files in a folder, at most: more than that is not read, it is searched."""


def folders() -> list[Path]:
    return sorted(path.parent for path in PACKAGE.rglob("__init__.py"))


def said(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_every_folder_says_its_role_in_one_line() -> None:
    for path in {path.parent for path in modules()}:
        init = path / "__init__.py"
        assert init.exists(), f"{path} has no __init__.py"
        doc = ast.get_docstring(tree(init)) or ""
        first = doc.partition("\n")[0]
        assert first.endswith("."), f"{said(init)} must say in one line what this folder is for"


def test_no_file_repeats_the_name_of_its_folder() -> None:
    """`space/space.py`, the main file of a folder, may."""
    repeated = []
    for path in modules():
        folder, stem = path.parent.name, path.stem
        words = {word.removesuffix("s") for word in stem.split("_")}
        if path.parent != PACKAGE and stem != folder and folder.removesuffix("s") in words:
            repeated.append(said(path))
    assert not repeated


def test_folders_are_small_enough_to_read() -> None:
    crowded = {said(path): n for path in folders() if (n := len(list(path.glob("*.py")))) > CROWD}
    assert not crowded
    assert len(list(PACKAGE.glob("[!_]*.py"))) <= LOOSE


def test_no_public_class_name_stands_for_two_things() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(said(path))
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice


# -- unused names ------------------------------------------------------------------------------------------------------
CALLED_BY_LIBRARIES = {
    "list_commands",
    "format_commands",
    "get_command",
    "redirect_request",
    "capture_signals",
    "send_400_response",
    "sample_relative",
    "list_",
}
"""Methods that click, urllib, uvicorn and Optuna look for, and a command whose name a decorator uses."""


@cache
def used() -> Counter[str]:
    """How often each identifier stands in the package: in code, and in strings that are not docstrings."""
    found: Counter[str] = Counter()
    for path in modules():
        for token in tokenize.generate_tokens(io.StringIO(text(path)).readline):
            if token.type == tokenize.NAME:
                found[token.string] += 1
            elif token.type == tokenize.STRING and not token.string.startswith(('"""', 'r"""')):
                found.update(re.findall(r"[A-Za-z_]\w*", token.string))
    return found


@cache
def documented() -> str:
    return " ".join(path.read_text(encoding="utf-8") for path in (*ROOT.glob("docs/*.md"), ROOT / "README.md"))


def public_names(path: Path) -> Iterator[tuple[str, str]]:
    """Functions, classes, methods and constants of a module, each with its docstring."""
    for node in tree(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield from ((name.id, "") for name in ast.walk(target) if isinstance(name, ast.Name))
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name, ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield member.name, ast.get_docstring(member) or ""


def test_every_public_name_is_used_by_the_package_itself() -> None:
    """What only tests use is dead; what only benchmarks use lives in benchmarks/. Equations of a paper, what the
    documentation names, and the suites for third parties are there for others."""
    unused = []
    for path in modules():
        if path.is_relative_to(PACKAGE / "testing"):
            continue
        for name, doc in public_names(path):
            if name.startswith("_") or used()[name] > 1 or name in CALLED_BY_LIBRARIES:
                continue
            if "Paper:" not in doc and not re.search(rf"\b{name}\b", documented()):
                unused.append(f"{said(path)}: {name}")
    assert not unused


# -- the way in --------------------------------------------------------------------------------------------------------
_PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w.-]+\.(?:py|md|toml|yaml))?|[\w-]+\.py)`")


def test_every_file_and_folder_that_the_way_in_names_is_there() -> None:
    for page in (ROOT / "docs" / "architecture.md", ROOT / "docs" / "writing-a-policy.md", ROOT / "CONTRIBUTING.md"):
        named = set(_PATH.findall(page.read_text(encoding="utf-8")))
        missing = sorted(path for path in named if "NAME" not in path and not _exists(path))
        assert not missing, f"{page.name} names {missing}"


def _exists(path: str) -> bool:
    return (ROOT / path).exists() or any(list(place.rglob(path)) for place in (PACKAGE, ROOT / "tests"))


def test_the_tree_in_the_documentation_is_the_tree() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {said(path) for path in folders()} - {"."}
    missing = sorted(room for room in rooms if not re.search(rf"\b{room.rpartition('/')[2]}\b", page))
    assert not missing, f"docs/architecture.md says nothing of {missing}"
