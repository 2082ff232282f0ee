"""The processes of a run, by what they do."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.storm.case import Run

ROLES = ("controller", "supervisor", "player", "program")


def processes_of(run: Run) -> list[int]:
    """All that carry its mark and are not zombies."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            if run.mark.encode() in environment and _fields(int(name))[0] not in "ZX":
                found.append(int(name))
        except OSError:
            continue
    return found


def by_role(run: Run) -> dict[str, dict[str, int]]:
    """Segment -> role -> process, of the segments that are running; "" has the controller."""
    found: dict[str, dict[str, int]] = {}
    if run.is_driven():
        assert run.controller is not None
        found[""] = {"controller": run.controller.pid}
    for path in (run.folder.path / "segments").glob("*/pid.json"):
        try:
            supervisor = json.loads(path.read_text())
            state, _, *rest = _fields(supervisor["pid"])
            if state in "ZX" or rest[17] != supervisor["birth"]:
                continue
        except (OSError, ValueError):
            continue
        roles = {"supervisor": supervisor["pid"]}
        for role, parent in (("player", "supervisor"), ("program", "player")):
            children = _children(roles.get(parent, 0), "work.py" if role == "program" else "shoestring.worker")
            if children:
                roles[role] = children[0]
        found[path.parent.name] = roles
    return found


def _children(parent: int, word: str) -> list[int]:
    found = []
    for name in os.listdir("/proc") if parent else ():
        try:
            is_child = name.isdigit() and int(_fields(int(name))[1]) == parent
            if is_child and word.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def _fields(pid: int) -> list[str]:
    """Of its state on."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2 :].split()
