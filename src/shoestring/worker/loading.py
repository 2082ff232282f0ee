"""Loading the user's function in another process: "folder/file.py:name" or "package.module:name".

The file is imported, never run as a script, so `if __name__ == "__main__"` is not needed even when the file starts its
own study at the top level: `tune()` calls `stop_if_importing()` first, which ends the import right there. Everything
above the call is defined then, as it was when the study was started.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType

from shoestring.errors import ShoestringError, SpecError
from shoestring.trial import Trial

TrainFunction = Callable[[Trial], object]

_PACKAGE = Path(__file__).parent.parent
_OURS = (str(_PACKAGE / "worker"), str(_PACKAGE / "backends"), str(_PACKAGE / "trial.py"), "<")
"""Frames that do not help the author of a training function."""
_STDLIB = sysconfig.get_path("stdlib")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_importing: ContextVar[bool] = ContextVar("importing_user_code", default=False)


class StudyReached(BaseException):
    """The import reached the line that starts the study. Not an Exception: user code must not catch it by accident."""


def importing() -> bool:
    """Is the user's file being imported for its function, rather than run?"""
    return _importing.get()


def stop_if_importing() -> None:
    """For every function that starts a study: a file imported for its function must not start it a second time."""
    if importing():
        raise StudyReached


def load_function(address: str, folder: Path) -> TrainFunction:
    """The function at an address; relative paths start at `folder`."""
    place, _, name = address.rpartition(":")
    if not place or not name:
        raise SpecError(f"{address!r} names no function", hint="write it as file.py:function or module:function")
    module = _import_file((folder / place).resolve()) if place.endswith(".py") else _import_module(place, folder)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise SpecError(
            f"{place} defines no function {name!r}", hint="define it at the top level, above the first tune()"
        )
    return found


def address_of(function: TrainFunction) -> str:
    """Where another process finds this function."""
    name = getattr(function, "__qualname__", "")
    code = getattr(function, "__code__", None)
    if code is None or not name or "<" in name:
        raise SpecError(
            f"{name or function!r} cannot be found by another process",
            hint="define the training function with def, at the top level of a file",
        )
    path = Path(code.co_filename)
    if not path.is_file():
        raise SpecError(
            f"{name!r} is not in a file another process could read ({code.co_filename})",
            hint='put it in a .py file and import it from there, or run in this process: on="inline"',
        )
    return f"{path.resolve()}:{name}"


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SpecError(f"there is no file {path}", hint="was it moved since the study was started?")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} is not a Python file")
    sys.path.insert(0, str(path.parent))  # as when the file is run: modules beside it can be imported
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    _guarded(lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
    return module


def _import_module(name: str, folder: Path) -> ModuleType:
    sys.path.insert(0, str(folder))
    _guarded(lambda: importlib.import_module(name))
    try:
        return sys.modules[name]
    except KeyError:  # a package whose import ended at the start of the study
        raise SpecError(
            f"importing {name} starts a study", hint="put tune() under if __name__ == '__main__', or in another file"
        ) from None


def _guarded(run: Callable[[], object]) -> None:
    token = _importing.set(True)
    try:
        run()
    except StudyReached:
        pass
    finally:
        _importing.reset(token)


def describe(error: BaseException) -> str:
    """One line for people: what failed, and where in their own code."""
    if isinstance(error, ShoestringError):
        return f"{error} ({error.hint})" if error.hint else str(error)
    where = _user_line(error)
    return f"{_sentence(error)} ({where})" if where else _sentence(error)


def _sentence(error: BaseException) -> str:
    """What failed: the type, and the first line of the message that says something."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}{f': {first}' if first else ''}"


def _user_line(error: BaseException) -> str:
    """The innermost line that the user wrote: what they passed to a library tells more than where that gave up."""
    if isinstance(error, SyntaxError) and error.filename and not error.filename.startswith("<"):
        return f"{Path(error.filename).name}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_OURS)]
    written = [frame for frame in frames if not _is_library(frame.filename)] or frames
    return f"{Path(written[-1].filename).name}:{written[-1].lineno}" if written else ""


def _is_library(filename: str) -> bool:
    return filename.startswith(_STDLIB) or not _INSTALLED.isdisjoint(Path(filename).parts)
