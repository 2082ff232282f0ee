"""The identity of a process: its number may be reused, its number with its start time may not. And its descendants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_HAS_PROC = Path("/proc/self/stat").exists()


def birth(pid: int) -> str | None:
    """The start time of the process, as the system prints it; None if it is gone or a zombie."""
    if _HAS_PROC:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat[stat.rindex(")") + 2 :].split()  # the name in brackets may hold blanks
        return None if fields[0] in "ZX" else fields[19]
    listed = _ps("-o", "stat=,lstart=", "-p", str(pid)).strip()
    state, _, since = listed.partition(" ")
    return None if not listed or state.startswith("Z") else since.strip()


def family(pid: int) -> list[int]:
    """The process and all its descendants, whatever process groups they are in."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found = [pid]
    for member in found:
        found.extend(children.get(member, ()))
    return found


def _parents() -> Iterator[tuple[int, int]]:
    if not _HAS_PROC:
        for line in _ps("-A", "-o", "pid=,ppid=").splitlines():
            process, parent = line.split()
            yield int(process), int(parent)
        return
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield int(path.parent.name), int(stat[stat.rindex(")") + 2 :].split()[1])


def _ps(*arguments: str) -> str:
    import subprocess

    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout
