"""Shoestring: hyper-parameter tuning and bags of jobs on cheap revocable machines, inside a hard budget and deadline.

Public names are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it: importing typing would take longer than all of this file
__version__ = "0.1.0"

_HOMES = {
    "shoestring.api": ("resume", "run_bag", "simulate", "tune"),
    "shoestring.errors": ("DataError", "ShoestringError", "SpecError"),
    "shoestring.specs.market": ("Market", "machines"),
    "shoestring.space.parameters": (
        *("choice", "constant", "integer", "log", "uniform"),
        *("machine_count", "machine_type", "on_spot", "zone"),
    ),
    "shoestring.report.receipt": ("Receipt",),
    "shoestring.report.study": ("Bag", "Study"),
    "shoestring.trial": ("Trial",),
    "shoestring.optimizer.optimizer": ("Optimizer",),
    "shoestring.world.sim.workload": ("Latencies", "SublinearSpeed", "Workload"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Bag",
    "DataError",
    "Latencies",
    "Market",
    "Optimizer",
    "Receipt",
    "ShoestringError",
    "SpecError",
    "Study",
    "SublinearSpeed",
    "Trial",
    "Workload",
    "choice",
    "constant",
    "integer",
    "log",
    "machine_count",
    "machine_type",
    "machines",
    "on_spot",
    "resume",
    "run_bag",
    "simulate",
    "tune",
    "uniform",
    "zone",
]

if TYPE_CHECKING:
    from shoestring.api import resume, run_bag, simulate, tune
    from shoestring.errors import DataError, ShoestringError, SpecError
    from shoestring.optimizer.optimizer import Optimizer
    from shoestring.report.receipt import Receipt
    from shoestring.report.study import Bag, Study
    from shoestring.space.parameters import (
        choice,
        constant,
        integer,
        log,
        machine_count,
        machine_type,
        on_spot,
        uniform,
        zone,
    )
    from shoestring.specs.market import Market, machines
    from shoestring.trial import Trial
    from shoestring.world.sim.workload import Latencies, SublinearSpeed, Workload


def __getattr__(name: str) -> object:
    from importlib import import_module

    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'shoestring' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
