"""A folder that is said to be on some file system: the list of mounts is replaced, the folder is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoestring.storage import file_system


def mount_list(monkeypatch: pytest.MonkeyPatch, folder: Path, *lines: str) -> None:
    """Replace the system's list of mounts by these lines, each `POINT TYPE OPTIONS`."""
    root = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    others = (line.split(" ") for line in lines)
    rows = [f"2 1 0:9 / {point} rw,relatime - {kind} server:/x {options}\n" for point, kind, options in others]
    listed = folder / "mountinfo"
    listed.write_text(root + "".join(rows))
    monkeypatch.setattr(file_system, "MOUNTS", listed)


def said_to_be_on(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *, listed_in: Path, options: str = "rw"
) -> None:
    """From now on this folder counts as a mount of that type."""
    point = str(folder.resolve()).replace(" ", r"\040")
    mount_list(monkeypatch, listed_in, f"{point} {kind} {options}")
