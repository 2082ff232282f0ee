"""A cgroup for the processes of a segment, where this user may make one (Linux, version 2 of cgroups).

A process does not leave it, whatever it does to its environment, its files, its session and its parents; and all that
is in it is killed by one write. It has no limits of its own: memory and CPU stay those of the cgroup it is in.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_DYING_S = 5.0


_PREFIX = "shoestring-"


def make_cgroup() -> Path | None:
    """A new cgroup in that of this process; None where that is not possible or not allowed."""
    try:
        within = _own_cgroup()
        if within is None:
            return None
        folder = within / f"{_PREFIX}{os.getpid()}-{time.time_ns():x}"
        folder.mkdir()
        _remove_abandoned(within)
    except OSError:
        return None
    if (folder / "cgroup.kill").exists():  # since Linux 5.14
        return folder
    remove_cgroup(folder)
    return None


def _remove_abandoned(within: Path) -> None:
    """Those whose supervisor was killed, once they are empty."""
    for name in os.listdir(within):
        if name.startswith(_PREFIX):
            try:
                os.kill(int(name.split("-")[1]), 0)
            except ProcessLookupError:
                remove_cgroup(within / name)
            except (PermissionError, ValueError):
                continue


def enter_cgroup(folder: Path) -> None:
    """Put this process into it, and so all that it will start."""
    with suppress(OSError):  # it may be made, but not entered: there are other ways to find a process
        (folder / "cgroup.procs").write_text("0")


def end_cgroup(folder: Path) -> None:
    """Kill everything in it, and remove it."""
    try:
        (folder / "cgroup.kill").write_text("1")
    except FileNotFoundError:
        return  # removed before
    except OSError:
        pass  # no longer ours; what can be found otherwise is killed
    until = time.monotonic() + _DYING_S
    while not remove_cgroup(folder) and time.monotonic() < until:
        time.sleep(0.002)


def remove_cgroup(folder: Path) -> bool:
    """True once it is gone. It can be removed only when it is empty."""
    try:
        for path, folders, _ in os.walk(folder, topdown=False):
            for name in folders:
                os.rmdir(os.path.join(path, name))
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _own_cgroup() -> Path | None:
    own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::/")), "")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, kind = line.partition(" - ")
        root, mounted = place.split()[3:5]
        if kind.startswith("cgroup2 ") and (own + "/").startswith(root.rstrip("/") + "/") and ".." not in own:
            return Path(mounted, own[len(root.rstrip("/")) :].lstrip("/"))
    return None
