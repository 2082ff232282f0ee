"""A disk that is small enough to fill, with real errors."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class TinyDisk:
    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> Path:
        """Use up all free space; removing the file frees it again."""
        ballast = self.path / "ballast"
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return ballast

    def make_readonly(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[TinyDisk]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a small tmpfs")
    yield TinyDisk(path)
    subprocess.run(["umount", "-l", str(path)], check=True)
