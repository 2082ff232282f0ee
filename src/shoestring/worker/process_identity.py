"""The identity of a process: its number may be reused, its number with its start time may not. And its descendants."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_HAS_PROC = Path("/proc/self/stat").exists()
_HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


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
    if _HAS_CHILDREN:
        found = [pid]
        for member in found:
            found.extend(_children(member))
        return found
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found = [pid]
    for member in found:
        found.extend(children.get(member, ()))
    return found


def group(leader: int) -> list[int]:
    """The processes of a process group."""
    if not _HAS_PROC:
        lines = (line.split() for line in _ps("-A", "-o", "pid=,pgid=").splitlines())
        return [int(process) for process, number in lines if int(number) == leader]
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getpgid(int(name)) == leader:
                found.append(int(name))
        except (ProcessLookupError, PermissionError):
            continue  # it has just ended
    return found


def _children(pid: int) -> Iterator[int]:
    """Of all its threads. The list in /proc may leave out some while others end, and is never empty for that."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                yield from map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        return  # it has just ended


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
