"""Background tasks: slow, pure functions registered by name, so that a journal can name one without holding code.

A recorded name never changes. Ours are explicit ("trimtuner.suggest"), so that modules may move; a function of another
package is named "module:function".
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from shoestring.errors import PolicyError

BackgroundTask = Callable[[Any], Any]

_HOMES = {"trimtuner.suggest": "shoestring.policies.search.trimtuner.suggest"}
"""The module that registers each of our own tasks: a fresh process must import it first."""
_OLD_NAMES = {"shoestring.search.trimtuner_thinker:suggest": "trimtuner.suggest"}
"""Names in journals written before tasks had explicit names."""

_TASKS: dict[str, BackgroundTask] = {}
_NAMES: dict[BackgroundTask, str] = {}


def background_task(name: str = "") -> Callable[[BackgroundTask], BackgroundTask]:
    """Register a pure function of plain JSON data, under this name or as "module:function"."""

    def register(function: BackgroundTask) -> BackgroundTask:
        called = name or f"{function.__module__}:{function.__qualname__}"
        _TASKS[called] = function
        _NAMES[function] = called
        return function

    return register


def task_name(function: BackgroundTask) -> str:
    """The name under which `Think` names a registered function."""
    if function not in _NAMES:
        raise PolicyError(
            f"{function.__module__}:{function.__qualname__} is the task of a Think decision but is not registered",
            hint="decorate it with @background_task()",
        )
    return _NAMES[function]


def current_name(recorded: str) -> str:
    """Today's name of a task that a journal names, which may be an old one."""
    return _OLD_NAMES.get(recorded, recorded)


def run_task(recorded: str, given: Any) -> Any:
    """Run a registered function, importing its module in a fresh process. Never runs anything unregistered."""
    name = current_name(recorded)
    if name not in _TASKS:
        importlib.import_module(_HOMES.get(name) or name.partition(":")[0])
    if name not in _TASKS:
        raise PolicyError(f"{name} is not a registered background task")
    return _TASKS[name](given)
