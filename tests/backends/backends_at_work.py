"""Backends for the tests, and the processes of a run."""

import time
from pathlib import Path

from shoestring.backends.local.place import LocalPlace
from shoestring.testing.slowness import PATIENCE_S


def local(rig):
    return LocalPlace().open(None, rig.site, rig.provider)


def processes_of(folder):
    """Running workers of a run and all they forked, found by their command line."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
            command = stat.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if state not in "ZX" and f"{folder}/segments" in command and "shoestring.worker" in command:
            found[int(stat.parent.name)] = command
    return found


def left_of(folder, within_s=PATIENCE_S):
    """Processes of a run that do not end. Killed ones take a moment, on a busy machine a long one."""
    until = time.monotonic() + within_s
    while (found := processes_of(folder)) and time.monotonic() < until:
        time.sleep(0.02)
    return list(found)
