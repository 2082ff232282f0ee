"""Does a worker that imports a study file get to its training function?

A worker imports the file up to the first call that starts a study, see `worker.loading`. A function below that call, in
a file with several, would not be found, once for each trial.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

from shoestring.errors import SpecError

_STARTS = frozenset({"tune", "run_bag", "simulate", "resume"})
_OTHER_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def check_reached(function: Callable[..., object]) -> None:
    """SpecError if a call that starts a study comes before the function in its file."""
    code = function.__code__
    path = Path(code.co_filename)
    try:
        module = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # it was changed since it was loaded: the worker will say so
    lines = [call.lineno for call in _starting_calls(module) if call.lineno < code.co_firstlineno]
    if lines:
        raise SpecError(
            f"{path.name}: {function.__qualname__} on line {code.co_firstlineno} is below a call that starts a study, "
            f"on line {min(lines)}: workers import the file up to that call, and would not find it",
            hint="define all training functions above the first call, or give each study a file of its own",
        )


def _starting_calls(module: ast.Module) -> Iterator[ast.Call]:
    nodes = list(_run_at_import(module))
    packages, names = set[str](), set[str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            packages |= {alias.asname or alias.name for alias in node.names if alias.name == "shoestring"}
        if isinstance(node, ast.ImportFrom) and node.module in ("shoestring", "shoestring.api"):
            names |= {alias.asname or alias.name for alias in node.names if alias.name in _STARTS}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in names:
                yield node
            case ast.Call(func=ast.Attribute(value=ast.Name(id=package), attr=name)):
                if package in packages and name in _STARTS:
                    yield node


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What an import runs: not the inside of functions and classes, nor what is left to `__main__`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _OTHER_SCOPES) or (isinstance(child, ast.If) and _names_main(child.test)):
            continue
        yield child
        yield from _run_at_import(child)


def _names_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))
