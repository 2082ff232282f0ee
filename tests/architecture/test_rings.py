"""Imports go one way, and the pure rings stay pure: checked on the syntax trees, so that nothing has to run."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.architecture.source import PACKAGE, dotted, modules, text, tree

PURE = {"kernel", "space", "market", "models", "optimizer", "policies", "guard.py"}
IMPURE_MODULES = {"time", "os", "threading", "logging", "subprocess", "socket", "multiprocessing", "asyncio"}
RINGS = [
    {"errors", "units", "values"},
    {"space"},
    {"kernel"},
    {"market", "models", "optimizer"},
    {"policies", "guard"},
    {"recipes"},
    {"controller", "world", "storage", "backends", "host", "worker", "trial"},
]
"""Each ring may import itself and those before it. Everything not named (api, cli, runs, report, ...) is outermost."""
HEAVY = {"numpy", "scipy", "pandas", "pyarrow", "rich", "yaml", "optuna", "ray", "sklearn", "torch"}
ARRAYS = {"numpy", "scipy"}
NUMERIC_ROOMS = ("shoestring.models.", "shoestring.optimizer.", "shoestring.policies.search.flex.")
"""Here a module may be all arithmetic on arrays and load NumPy when it is loaded. Everything else imports such a module
on first use, so that a command that computes nothing starts fast."""


@cache
def imports(path: Path, *, top_level: bool = False) -> set[str]:
    nodes = tree(path).body if top_level else list(ast.walk(tree(path)))
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


def test_imports_point_inwards() -> None:
    outward = {
        dotted(path): sorted(reached)
        for path in modules()
        if (reached := {m for m in imports(path) if m.startswith("shoestring.") and ring_of(m) > ring_of(dotted(path))})
        and not dotted(path).startswith("shoestring.testing")
    }
    assert not outward, f"these reach outwards: {outward}"


def test_pure_modules_touch_no_clock_and_no_outside() -> None:
    pure = [path for path in modules() if path.relative_to(PACKAGE).parts[0] in PURE]
    assert len(pure) > 100
    for path in pure:
        touched = {m.partition(".")[0] for m in imports(path)} & IMPURE_MODULES
        assert not touched, f"{dotted(path)} imports {sorted(touched)}"
        for node in ast.walk(tree(path)):
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


def test_heavy_libraries_are_met_on_first_use() -> None:
    for path in modules():
        loaded = imports(path, top_level=True)
        met = {m.partition(".")[0] for m in loaded} & HEAVY
        if dotted(path).startswith(NUMERIC_ROOMS):
            met -= ARRAYS
        else:
            met |= loaded & numeric()
        assert not met, f"{dotted(path)} imports {sorted(met)} when it is loaded"


def test_files_hold_one_thing() -> None:
    long = {dotted(path): n for path in modules() if (n := len(text(path).splitlines())) > 450}
    assert not long, f"is a second thing hiding inside? {long}"


PLACES = {"local", "inline", "ray", "slurm"}


def test_only_the_registry_looks_into_the_word_of_a_place() -> None:
    """Whether a run is on Ray, on Slurm or inline is asked of its place, never of the string `on`."""
    found = []
    for path in modules():
        if path == PACKAGE / "backends" / "registry.py":
            continue
        for node in ast.walk(tree(path)):
            tests_a_start = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "startswith"
            if not (isinstance(node, ast.Compare) or tests_a_start):
                continue
            inside = list(ast.walk(node))
            strings = {part.value for part in inside if isinstance(part, ast.Constant) and isinstance(part.value, str)}
            names = {getattr(part, "id", getattr(part, "attr", "")) for part in inside} | strings
            if "on" in names and any(word.partition(":")[0] in PLACES for word in strings):
                found.append(f"{dotted(path)}:{node.lineno}")
    assert not found
