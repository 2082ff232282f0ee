"""Which modules a piece of code imports, in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(done.stdout.split())
