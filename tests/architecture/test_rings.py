"""Imports go one way, and the pure rings stay pure: checked on the syntax trees, so that nothing has to run."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import shoestring

ROOT = Path(shoestring.__file__).parent
PURE = {"kernel", "space", "market", "models", "optimizer", "policies", "guard.py"}
IMPURE_MODULES = {"time", "os", "threading", "logging", "subprocess", "socket", "multiprocessing", "asyncio"}
RINGS = [
    {"errors", "units", "values"},
    {"space"},
    {"kernel"},
    {"market", "models", "optimizer"},
    {"policies", "guard"},
    {"recipes"},
    {"controller", "world", "storage", "backends", "worker", "trial"},
]
"""Each ring may import itself and those before it. Everything not named (api, cli, runs, report, ...) is outermost."""
HEAVY = {"numpy", "scipy", "pandas", "pyarrow", "rich", "yaml", "optuna", "ray", "sklearn", "torch"}
ARRAYS = {"numpy", "scipy"}
NUMERIC_ROOMS = ("shoestring.models.", "shoestring.optimizer.", "shoestring.policies.search.flex.")
"""Here a module may be all arithmetic on arrays and load NumPy when it is loaded. Everything else imports such a module
on first use, so that a command that computes nothing starts fast."""


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imports(path: Path, *, top_level: bool = False) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            if node.module.partition(".")[0] == "shoestring":  # `from package import module`, or a name: no harm then
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def ring_of(module: str) -> int:
    name = module.split(".")[1] if "." in module else ""
    return next((index for index, ring in enumerate(RINGS) if name in ring), len(RINGS))


def dotted(path: Path) -> str:
    return ".".join(["shoestring", *path.relative_to(ROOT).with_suffix("").parts])


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_imports_point_inwards(path: Path) -> None:
    own = ring_of(dotted(path))
    outward = {m for m in imports(path) if m.startswith("shoestring.") and ring_of(m) > own}
    if dotted(path).startswith("shoestring.testing"):
        return
    assert not outward, f"{dotted(path)} reaches outwards to {sorted(outward)}"


@pytest.mark.parametrize("path", [p for p in modules() if p.relative_to(ROOT).parts[0] in PURE], ids=dotted)
def test_pure_modules_touch_no_clock_and_no_outside(path: Path) -> None:
    touched = {m.partition(".")[0] for m in imports(path)} & IMPURE_MODULES
    assert not touched, f"{dotted(path)} imports {sorted(touched)}"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random":
            assert node.attr == "Random", f"{dotted(path)} uses the global random generator: random.{node.attr}"


@cache
def numeric() -> frozenset[str]:
    """Modules that load NumPy or SciPy when they are loaded, themselves or through another one."""
    loads = {dotted(path): imports(path, top_level=True) for path in modules()}
    found = {name for name, loaded in loads.items() if {m.partition(".")[0] for m in loaded} & ARRAYS}
    while more := {name for name, loaded in loads.items() if loaded & found} - found:
        found |= more
    return frozenset(found)


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_heavy_libraries_are_met_on_first_use(path: Path) -> None:
    loaded = imports(path, top_level=True)
    met = {m.partition(".")[0] for m in loaded} & HEAVY
    if dotted(path).startswith(NUMERIC_ROOMS):
        met -= ARRAYS
    else:
        met |= loaded & numeric()
    assert not met, f"{dotted(path)} imports {sorted(met)} when it is loaded"


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_files_hold_one_thing(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 450, f"{dotted(path)} is long: is a second thing hiding inside?"
