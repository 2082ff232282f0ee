"""The package's source, read and parsed once for all checks."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import shoestring

PACKAGE = Path(shoestring.__file__).parent


@cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


def dotted(path: Path) -> str:
    return ".".join(["shoestring", *path.relative_to(PACKAGE).with_suffix("").parts])
