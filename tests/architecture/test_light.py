"""The package imports and helps without any extra, and without loading anything heavy."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "scipy", "pandas", "pyarrow", "rich", "yaml", "optuna", "torch", "ray", "boto3", "matplotlib")


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sorted(m.partition('.')[0] for m in sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(out.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import shoestring") & {*HEAVY, "msgspec", "click", "sqlite3"}


def test_help_loads_nothing_heavy() -> None:
    code = (
        "from shoestring.cli import main\n"
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])"
    )
    assert not modules_after(code) & {*HEAVY, "sqlite3"}


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
