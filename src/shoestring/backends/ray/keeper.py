"""The keeper of a Ray process on this machine: it kills the process, and all it started, when its paid time is over.

`python -m shoestring.backends.ray.keeper FOLDER` with a `keep.json` in it. The keeper leads a session of its own, and
everything Ray starts stays in that session, workers with user code included. Killing the session is what a cloud does
when it preempts a machine: without a chance to save, and without anything left running.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoestring.errors import BackendError
from shoestring.worker.heartbeat import Heartbeat
from shoestring.worker.process_identity import birth
from shoestring.worker.steady_clock import SteadyClock
from shoestring.worker.task import LOCK, LOG, PID, read_json, write_json

KEEP = "keep.json"
KEPT_IN = "RAY_KEPT_IN"
"""In the environment of all processes of a keeper: its folder."""
_LOOK_EVERY_S = 0.1
_DYING_S = 10.0


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, and until when; replaced as a whole when the machine is paid for longer."""

    command: tuple[str, ...]
    end_at: float = 1e15
    """Wall time."""
    heartbeat: str
    """A file the controller touches while it runs."""
    silence_s: float
    """Seconds without a heartbeat after which the controller counts as dead and the process is killed."""
    scratch: str | None = None
    """A folder to remove with it."""


class KeeperSignature(msgspec.Struct, frozen=True):
    """What a keeper writes about itself once it holds the folder's lock."""

    pid: int
    birth: str | None


def keep(folder: Path) -> None:
    """Run the process of this folder until its time is over, unless another keeper does or did."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    if (folder / PID).exists() or not (folder / KEEP).exists():
        return
    write_json(folder / PID, KeeperSignature(os.getpid(), birth(os.getpid())))
    keep = read_json(folder / KEEP, Keep)
    with (folder / LOG).open("ab") as log:
        kept = subprocess.Popen(keep.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    heartbeat = Heartbeat(keep.heartbeat)
    clock = SteadyClock.of_run(Path(keep.heartbeat).parent)
    while kept.poll() is None and not _is_over(folder, heartbeat, clock):
        time.sleep(_LOOK_EVERY_S)
    end_session(os.getpid())
    clear_up(keep)


def clear_up(keep: Keep) -> None:
    """Remove its scratch folder, once none of its processes runs."""
    if keep.scratch is not None:
        shutil.rmtree(keep.scratch, ignore_errors=True)


def _is_over(folder: Path, heartbeat: Heartbeat, clock: SteadyClock) -> bool:
    try:
        keep = read_json(folder / KEEP, Keep)
    except FileNotFoundError:
        return True
    return clock.time() >= keep.end_at or heartbeat.silence_s() >= keep.silence_s


def end_session(leader: int, *, kept_in: Path | None = None) -> None:
    """Kill every process of the session but the caller, and wait until all are dead.

    If the leader is dead, its number may meanwhile be another session's. `kept_in` is then the keeper's folder: only
    processes with it in their environment are killed.
    """
    until = time.monotonic() + _DYING_S
    while members := [
        pid for pid in _session(leader) if pid != os.getpid() and (kept_in is None or _is_kept_in(kept_in, pid))
    ]:
        if time.monotonic() > until:
            raise BackendError(f"processes {members} do not die", hint="is their disk or their device stuck?")
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.005)


def _session(leader: int) -> Iterator[int]:
    for pid in _processes():
        try:
            if os.getsid(pid) == leader and birth(pid) is not None:
                yield pid
        except (ProcessLookupError, PermissionError):
            continue  # it has just ended, or is another user's


def _is_kept_in(folder: Path, pid: int) -> bool:
    try:
        return f"{KEPT_IN}={folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _processes() -> list[int]:
    if os.path.isdir("/proc/self"):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
    return [int(word) for word in listed.stdout.split()]


def main() -> None:
    keep(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
