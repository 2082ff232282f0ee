"""file_system_of: is a folder on a disk of this computer, or may other computers have it too?

What is safe on a local disk may not be on a shared one: memory maps and caches are those of each computer, and locks
may not reach the others. A type that is not known as local counts as shared: that costs time, the reverse costs data.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_LOCAL = {
    *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "reiserfs", "nilfs2", "ubifs"),
    *("ntfs", "ntfs3", "fuseblk", "vfat", "exfat", "hfsplus", "udf", "squashfs", "erofs", "iso9660"),
    *("tmpfs", "ramfs", "rootfs", "devtmpfs", "overlay", "aufs", "ecryptfs", "fuse.fuse-overlayfs"),
}
"""File systems that one computer has to itself: disks, memory, and layers over them. `fuseblk` is FUSE on a disk."""

_LOCKS_STAY_HERE = re.compile(r"nolock|local_lock=(?:all|posix|flock)|localflock|noflock|nobrl")
"""Mount options of NFS, Lustre and SMB with which a lock is kept on the computer that takes it."""


@dataclass(frozen=True, slots=True)
class FileSystem:
    """The file system of a folder, as it is mounted here."""

    kind: str
    """`ext4`, `nfs4`, `fuse.sshfs`, ...; empty where the system does not say (it has no list of mounts in /proc)."""
    local_locks: str = ""
    """The mount option that keeps locks on this computer, if there is one."""

    @property
    def is_shared(self) -> bool:
        return bool(self.kind) and self.kind not in _LOCAL


def file_system_of(path: Path) -> FileSystem:
    """The file system that this path is on, or will be once it is made."""
    target = os.path.realpath(path)
    os.path.exists(target)  # makes an automounter mount it
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return FileSystem("")
    nearest, found = "", FileSystem("")
    for line in lines:
        mount, _, source = line.partition(" - ")
        fields, (kind, *rest) = mount.split(" "), source.split(" ")
        point = _unescaped(fields[4])
        # Of two mounts at the same point the later one hides the other.
        if len(point) >= len(nearest) and (target + "/").startswith(point.rstrip("/") + "/"):
            options = ",".join((fields[5], *rest[1:])).split(",")
            local = next((option for option in options if _LOCKS_STAY_HERE.fullmatch(option)), "")
            nearest, found = point, FileSystem(kind, local)
    return found


def _unescaped(field: str) -> str:
    """Blanks, tabs, line ends and backslashes are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
