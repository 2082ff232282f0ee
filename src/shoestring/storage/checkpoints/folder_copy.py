"""Copies of folders with a hash of every file: how a checkpoint is saved and verified.

Standard library only: it runs beside the user's code. Regular files, folders and links within the folder are copied;
anything else (a link that leads out, a socket) could not be restored on another machine and is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from shoestring.errors import StorageError

_CHUNK_BYTES = 1 << 20


class Damaged(Exception):
    """A copy is not what the manifest says; the text names the file."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds, by relative name."""

    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Size in bytes and SHA-256 of each."""
    links: dict[str, str] = field(default_factory=dict)
    """Where each link leads, relative to the folder it is in."""
    folders: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(size for size, _ in self.files.values())

    @property
    def digest(self) -> str:
        """One hash for all names, sizes and contents."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Raises ValueError unless it is a manifest whose names all stay inside the folder."""
        try:
            plain = json.loads(text)
            files = {str(name): (int(size), str(digest)) for name, (size, digest) in plain["files"].items()}
            links = {str(name): str(target) for name, target in plain["links"].items()}
            folders = tuple(str(name) for name in plain["folders"])
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a manifest: {error!r}") from error
        for name in (*files, *links, *folders):
            if not stays_inside(name):
                raise ValueError(f"the name {name!r} leads out of the folder")
        for name, target in links.items():
            if not stays_inside(os.path.normpath(os.path.join(os.path.dirname(name), target))):
                raise ValueError(f"the link {name!r} leads out of the folder")
        return cls(files, links, folders)


def stays_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def copy_in(source: Path, target: Path) -> Manifest:
    """Copy a folder and return its manifest; on return every byte of the copy is on disk."""
    root = os.path.realpath(source)
    files: dict[str, tuple[int, str]] = {}
    links: dict[str, str] = {}
    folders: list[str] = []
    target.mkdir()
    for name, entry in _walk(root):
        place = target / name
        if entry.is_symlink():
            leads_to = os.path.realpath(entry.path)
            if os.path.commonpath((root, leads_to)) != root:
                raise StorageError(
                    f"{entry.path} is a link that leads out of the checkpoint, to {leads_to}",
                    hint="save a copy of the file: the link would be broken on another machine",
                )
            links[name] = os.path.relpath(leads_to, os.path.dirname(entry.path))
            os.symlink(links[name], place)
        elif entry.is_dir():
            folders.append(name)
            place.mkdir()
        elif entry.is_file():
            files[name] = _copy_file(entry.path, place, sync=True)
        else:
            raise StorageError(f"{entry.path} is neither a file nor a folder", hint="save files only")
    for name in (*reversed(folders), "."):
        sync_folder(target / name)
    return Manifest(files, links, tuple(folders))


def copy_out(source: Path, target: Path, manifest: Manifest) -> None:
    """Copy what the manifest lists, or raise Damaged."""
    target.mkdir()
    for name in manifest.folders:
        (target / name).mkdir()
    for name, expected in manifest.files.items():
        try:
            got = _copy_file(os.path.join(source, name), target / name, sync=False)
        except FileNotFoundError:
            raise Damaged(f"its file {name!r} is missing") from None
        if got[0] != expected[0]:
            raise Damaged(f"its file {name!r} has {got[0]} bytes instead of {expected[0]}")
        if got[1] != expected[1]:
            raise Damaged(f"its file {name!r} has other contents than were saved")
    for name, leads_to in manifest.links.items():
        os.symlink(leads_to, target / name)


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder; its name survives a power cut as what is written into it does."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def stats(path: Path) -> Iterator[os.stat_result]:
    """Of a folder and everything in it. Files that another process removes meanwhile are left out."""
    for folder, _, names in os.walk(path):
        for place in (folder, *(os.path.join(folder, name) for name in names)):
            with suppress(FileNotFoundError):
                yield os.lstat(place)


def _walk(folder: str, above: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below a folder with its relative name, folders before what is in them; links are not followed."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = above + entry.name
            yield name, entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, name + "/")


def _copy_file(source: str, target: Path, *, sync: bool) -> tuple[int, str]:
    """Size and SHA-256 of the copy, computed from the bytes that were written."""
    digest, size = hashlib.sha256(), 0
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    with open(source, "rb", buffering=0) as reading, open(target, "xb") as writing:
        while count := reading.readinto(buffer):
            digest.update(buffer[:count])
            writing.write(buffer[:count])
            size += count
        writing.flush()
        # Executable files stay executable; whatever their mode, we must be able to read and remove them.
        os.fchmod(writing.fileno(), stat.S_IMODE(os.fstat(reading.fileno()).st_mode) | 0o600)
        if sync:
            os.fsync(writing.fileno())
    return size, digest.hexdigest()
