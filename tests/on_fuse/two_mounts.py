"""TwoMounts: one folder, mounted twice through FUSE, as two computers see the folder of a file server.

The page caches of the two mounts know nothing of each other. With bindfs, installed if needed.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from shoestring.testing.slowness import PATIENCE_S

UNCACHED = (
    "-o",
    "direct_io,attr_timeout=0,entry_timeout=0,negative_timeout=0",
    "--multithreaded",
    "--enable-lock-forwarding",
)
"""No caches and no shared memory maps, and locks that both mounts see: NFS with its locks, as SQLite uses them."""
CACHED = ("--multithreaded",)
"""Caches of data, sizes and names, and locks that stay on each mount: `local_lock=all`, BeeGFS by default."""


def install() -> None:
    """With apt, if it is missing; skips the tests where that is not possible."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("two mounts of one folder need root and /dev/fuse")
    if shutil.which("bindfs"):
        return
    if shutil.which("apt-get") is None:
        pytest.skip("bindfs is not installed, and there is no apt-get to install it")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", "bindfs"]):
        done = subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True, check=False)
    if done.returncode or not shutil.which("bindfs"):
        pytest.skip(f"bindfs cannot be installed here: {done.stderr.strip()[-200:]}")


class TwoMounts:
    def __init__(self, folder: Path, options: tuple[str, ...]) -> None:
        self.disk, self.here, self.there = (folder / name for name in ("disk", "here", "there"))
        self._mounted: list[tuple[Path, subprocess.Popen]] = []
        self.disk.mkdir()
        try:
            for point in (self.here, self.there):
                point.mkdir()
                self._mount(point, options)
        except BaseException:
            self.end()
            raise

    def _mount(self, point: Path, options: tuple[str, ...]) -> None:
        command = ["bindfs", "-f", *options, str(self.disk), str(point)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._mounted.append((point, server))
        patience = time.monotonic() + PATIENCE_S
        while not os.path.ismount(point):
            if server.poll() is not None:
                pytest.skip(f"FUSE cannot be mounted here: {server.stdout.read().strip()[-200:]}")
            assert time.monotonic() < patience, "not mounted, and never will be"
            time.sleep(0.05)

    def end(self) -> None:
        for point, server in self._mounted:
            subprocess.run(["umount", "-l", str(point)], check=False, capture_output=True)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            server.stdout.close()
        self._mounted.clear()
