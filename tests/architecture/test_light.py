"""The package imports and helps without any extra, and without loading anything heavy."""

from __future__ import annotations

import subprocess
import sys

from tests.imports import loaded_after

HEAVY = ("numpy", "scipy", "pandas", "pyarrow", "rich", "yaml", "optuna", "torch", "ray", "boto3", "matplotlib")


HELPING = """
from shoestring.cli import main
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(['--help'])
"""
IMPORTED_BY_A_WORKER = """
import shoestring as ss
from shoestring.worker.supervisor import supervise
from shoestring.worker.loading import StudyReached, _importing

_importing.set(True)
try:
    ss.tune(None, space={"x": ss.uniform(0, 1)})
except StudyReached:
    pass
"""


def modules_after(code: str) -> set[str]:
    return {name.partition(".")[0] for name in loaded_after(code)}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import shoestring") & {*HEAVY, "msgspec", "click", "sqlite3"}


def test_help_loads_nothing_heavy() -> None:
    assert not modules_after(HELPING) & {*HEAVY, "sqlite3", "msgspec"}


def test_help_imports_no_command() -> None:
    ours = {name for name in loaded_after(HELPING) if name.startswith("shoestring.")}
    assert ours == {"shoestring.cli", "shoestring.cli.main"}


def test_a_worker_that_imports_a_study_file_stops_before_it_loads_what_starts_one() -> None:
    loaded = loaded_after(IMPORTED_BY_A_WORKER)
    assert not {name.partition(".")[0] for name in loaded} & {*HEAVY, "sqlite3", "click", "subprocess"}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("shoestring.")}
    assert rooms <= {"api", "errors", "kernel", "space", "storage", "trial", "units", "values", "worker"}
    assert not loaded & {"shoestring.kernel.state", "shoestring.kernel.step"}


def test_everything_public_is_there_with_all_extras_blocked() -> None:
    blocked = ("pandas", "pyarrow", "yaml", "optuna", "torch", "ray", "boto3", "matplotlib")
    code = f"""
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import shoestring
for name in shoestring.__all__:
    getattr(shoestring, name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
