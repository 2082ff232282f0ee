"""Who a process is: its number may be given to another one, its number and its time of birth may not."""

from __future__ import annotations

import subprocess
from pathlib import Path

_HAS_PROC = Path("/proc/self/stat").exists()


def birth(pid: int) -> str | None:
    """When the process began, in whatever words the system has for it; None if it is gone, or dead and not buried."""
    if _HAS_PROC:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat[stat.rindex(")") + 2 :].split()  # the name in brackets may hold blanks
        return None if fields[0] in "ZX" else fields[19]
    listed = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    state, _, since = listed.partition(" ")
    return None if not listed or state.startswith("Z") else since.strip()
