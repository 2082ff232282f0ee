"""Nothing that a segment starts outlives it: how its processes are found and killed, however they were started.

A program may leave its process group and its session (a daemon does), and any process may be killed at any time, ours
too. So there are several ways to find what is left, each for the case in which the one before it fails:

    descent      the supervisor and each player adopt what their descendants orphan (Linux: subreapers)
    parents      a program is killed by the kernel when its player dies (Linux)
    environment  every process of a segment has its folder in SHOESTRING_SEGMENT, unless it cleared its environment
    lock         the segment's lock is passed on to programs, so it is held as long as one of them runs
    cgroup       where this user may make one; see `cgroup`

What a program that is launched once for several machines starts on them, and through a cluster's daemons also on its
own, does not descend from us: it is found by its environment (`launched`), on each machine by the supervisor there.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from shoestring.errors import DamagedFile
from shoestring.worker.process_identity import birth, family
from shoestring.worker.task import PID, Task, read_json

SEGMENT = "SHOESTRING_SEGMENT"
"""In the environment of all processes of a segment: its folder."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLIENT = "srun"
"""It kills its processes when it gets a SIGTERM, and passes none on."""
_DAEMONS = ("hydra_pmi_proxy", "orted", "prted")
"""What mpirun starts on each machine. mpirun passes a SIGTERM on to the processes under them; they would end of it."""
_LOOK_EVERY_S = 0.002
_DYING_S = 5.0


def adopt_orphans() -> None:
    """From now on, descendants of this process whose parents die become its children. Linux only."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def dying_with(parent: int) -> Callable[[], None]:
    """To be called in a new child of this process: the kernel kills it when `parent` dies. Linux only."""

    def prepare() -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes  # a millisecond, in worker processes only

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end_children() -> bool:
    """Kill all descendants of this process and wait for them: none is left, unless one does not die (False)."""
    until = time.monotonic() + _DYING_S
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if ended:
            continue
        _kill(family(os.getpid())[1:])
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_EVERY_S)


def kill_all(find: Callable[[], Iterable[int]]) -> list[int]:
    """Kill the processes that `find` finds until it finds none. Returns those that do not die."""
    until = time.monotonic() + _DYING_S
    while left := [pid for pid in set(find()) - {os.getpid()} if birth(pid) is not None]:
        if time.monotonic() > until:
            return left
        _kill(left)
        time.sleep(_LOOK_EVERY_S)
    return []


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it has just ended, or runs as another user


def of_segment(folder: Path) -> list[int]:
    """The processes with this segment in their environment."""
    return [pid for pid, segment in _marked() if segment == str(folder)]


def of_segments_in(folder: Path) -> list[tuple[int, Path]]:
    """All processes of segments in this folder."""
    return [(pid, path) for pid, segment in _marked() if (path := Path(segment)).is_relative_to(folder)]


def holding(path: Path) -> list[int]:
    """The processes that have this file open."""
    wanted = os.path.realpath(path)
    found = []
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        try:
            if name.isdigit() and any(
                os.readlink(f"/proc/{name}/fd/{fd}") == wanted for fd in os.listdir(f"/proc/{name}/fd")
            ):
                found.append(int(name))
        except OSError:
            continue  # it has just ended, or is another user's
    return found


def _marked() -> Iterator[tuple[int, str]]:
    mark = f"{SEGMENT}=".encode()
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = file.read()
        except OSError:
            continue  # it has just ended, or is another user's
        if mark in variables:
            for variable in variables.split(b"\0"):
                if variable.startswith(mark):
                    yield int(name), os.fsdecode(variable[len(mark) :])


# -- what a program that is launched once has started ------------------------------------------------------------------
def launched(folder: Path, task: Task) -> set[int]:
    """What the program of this segment, or of this part of one, has started here beside its supervisor's own
    descendants."""
    main = folder.parent if task.first_rank else folder
    return set(of_segment(main)) - _supervised(main) - {os.getpid()} if task.hosts else set()


def ask_to_leave(processes: Collection[int]) -> None:
    """Send a SIGTERM to those of them that save and stop on it."""
    for pid in _to_be_asked(processes):
        with suppress(ProcessLookupError, PermissionError):  # it has just ended
            os.kill(pid, signal.SIGTERM)


def _to_be_asked(processes: Collection[int]) -> list[int]:
    names = {pid: _name(pid) for pid in processes}
    under_daemons = {pid for daemon, name in names.items() if name in _DAEMONS for pid in family(daemon)}
    return [pid for pid, name in names.items() if name != _CLIENT and pid not in under_daemons]


def end_launched(folder: Path, task: Task) -> None:
    """Kill what is `launched` here. Called when the segment is over."""
    if task.hosts:
        kill_all(lambda: launched(folder, task))


def _supervised(folder: Path) -> set[int]:
    """The supervisor of the segment and its descendants, if it runs on this machine: it ends those itself."""
    try:
        signed_in = read_json(folder / PID, dict[str, object])
    except (OSError, DamagedFile):
        return set()
    pid = signed_in.get("pid")
    if not isinstance(pid, int) or birth(pid) is None or birth(pid) != signed_in.get("birth"):
        return set()
    return set(family(pid))


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""  # it has just ended
