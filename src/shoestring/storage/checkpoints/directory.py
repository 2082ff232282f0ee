"""Checkpoints: folders saved by user code, restored whole or not at all.

Laws of every store, checked by `shoestring.testing.checkpoint_suite`: a checkpoint is visible only when whole; a put
that fails or is killed leaves the earlier ones unchanged; what is restored has the hash of what was saved; put and drop
are idempotent. Standard library only (and `CheckpointRef`): workers use it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import socket
import stat
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from shoestring.errors import CheckpointMissing, StorageError
from shoestring.kernel.types import CheckpointRef, JobId, SegmentId
from shoestring.storage.checkpoints.folder_copy import (
    Damaged,
    Manifest,
    copy_in,
    copy_out,
    make_folder,
    stats,
    sync_folder,
)

STALE_S = 3600.0
"""What was not written to for this long is a leftover, unless a lock decides it."""


class CheckpointStore(Protocol):
    def put(self, job: JobId, step: int, source: Path, *, segment: str = "") -> CheckpointRef:
        """Save a copy of a folder. With a segment, (job, step, segment) is its name: a second put returns the first."""
        ...

    def get(self, ref: CheckpointRef, into: Path) -> None:
        """Restore the saved folder as `into`. CheckpointMissing, and no `into`, if it is gone or damaged."""
        ...

    def drop(self, ref: CheckpointRef) -> None: ...

    def list(self, job: JobId | None = None) -> list[CheckpointRef]: ...


class DirectoryStore:
    """A folder of checkpoints: `<job>/<step>-<segment>/`, each with a manifest and, in `files`, the saved folder.

    A checkpoint is written and deleted in `.partial` and `.dropped`, and becomes visible or invisible by a rename.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def put(self, job: JobId, step: int, source: Path, *, segment: SegmentId | str = "") -> CheckpointRef:
        if step < 0:
            raise StorageError(f"step={step} of job {job!r} is negative")
        _check_word("job", job)
        if segment:
            _check_word("segment", segment)
            saved = self._ref(f"{job}/{step:06d}-{segment}")
            if saved is not None:
                return saved
        if not source.is_dir():
            raise StorageError(f"nothing to save for job {job!r} at step {step}: {source} is not a folder")
        partial = self.root / ".partial" / f"{uuid.uuid4().hex}@{_this_host()}"
        lock = None
        try:
            make_folder(self.root)
            partial.mkdir(parents=True)
            lock = _locked(partial)
            manifest = copy_in(source, partial / "files")
            name = f"{job}/{step:06d}-{segment or manifest.digest[:16]}"
            _write_manifest(partial, job, step, manifest)
            return self._reveal(partial, name)
        except OSError as error:
            raise _explained(error, f"save job {job!r} at step {step} in {self.root}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            if lock is not None:
                os.close(lock)

    def get(self, ref: CheckpointRef, into: Path) -> None:
        if into.is_dir() and any(into.iterdir()):
            raise StorageError(f"cannot restore a checkpoint into {into}: the folder is not empty")
        folder = self._folder(ref.name)
        copy = into.with_name(f".{into.name}.{uuid.uuid4().hex}")
        try:
            manifest = _read_manifest(folder)[2]
            if manifest.digest != ref.digest:
                raise Damaged("its manifest is not the one that was saved")
            into.parent.mkdir(parents=True, exist_ok=True)
            copy_out(folder / "files", copy, manifest)
            os.rename(copy, into)
        except FileNotFoundError:
            raise _missing(ref, "is gone") from None
        except (Damaged, ValueError) as error:
            raise _missing(ref, f"is damaged: {error}") from error
        except OSError as error:
            if error.errno == errno.EIO:
                raise _missing(ref, "cannot be read from its disk") from error
            raise _explained(error, f"restore job {ref.job!r} at step {ref.step} into {into}") from error
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def drop(self, ref: CheckpointRef) -> None:
        """Remove a checkpoint, if it is there."""
        try:
            self._hide(self._folder(ref.name))
        except OSError as error:
            raise _explained(error, f"drop {ref.name} from {self.root}") from error

    def list(self, job: JobId | None = None) -> list[CheckpointRef]:
        """Checkpoints by job and step, without those whose manifest cannot be read."""
        names = self._names() if job is None else (name for name in self._names() if name.startswith(f"{job}/"))
        found = [ref for ref in map(self._ref, names) if ref is not None]
        return sorted(found, key=lambda ref: (ref.job, ref.step, ref.name))

    def sweep(self, keep: Iterable[CheckpointRef] | None = None, *, older_than_s: float = STALE_S) -> tuple[str, ...]:
        """Remove leftovers of killed puts and, given `keep`, all checkpoints not in it. Returns their names.

        Only what was last written longer than `older_than_s` ago: another worker may be in the middle of a put, or its
        report may not have arrived yet. A put of this host whose process is gone is removed at once.
        """
        before = time.time() - older_than_s
        partials = [f".partial/{name}" for name in _children(self.root / ".partial")]
        abandoned = {name for name in partials if _is_abandoned(self.root / name)}
        unneeded = list(partials)
        if keep is not None:
            kept = {ref.name for ref in keep}
            unneeded += [name for name in self._names() if name not in kept]
        old = tuple(
            name
            for name in unneeded
            if name in abandoned or max((s.st_mtime for s in stats(self.root / name)), default=before) <= before
        )
        try:
            for name in old:
                self._hide(self.root / name)
            for name in _children(self.root / ".dropped"):
                shutil.rmtree(self.root / ".dropped" / name, ignore_errors=True)
        except OSError as error:
            raise _explained(error, f"tidy up {self.root}") from error
        return old

    def size_bytes(self) -> int:
        """The size of all files of the store, leftovers included."""
        return sum(s.st_size for s in stats(self.root) if stat.S_ISREG(s.st_mode))

    def _folder(self, name: str) -> Path:
        job, _, rest = name.partition("/")
        _check_word("job", job)
        _check_word("checkpoint", rest)
        return self.root / job / rest

    def _names(self) -> Iterator[str]:
        for job in _children(self.root):
            if not job.startswith("."):
                yield from (f"{job}/{name}" for name in _children(self.root / job))

    def _ref(self, name: str) -> CheckpointRef | None:
        try:
            job, step, manifest = _read_manifest(self._folder(name))
        except (OSError, ValueError, StorageError):
            return None
        return CheckpointRef(
            job=JobId(job), step=step, name=name, size_bytes=manifest.size_bytes, digest=manifest.digest
        )

    def _reveal(self, partial: Path, name: str) -> CheckpointRef:
        """Make a finished checkpoint visible, unless a whole one of that name already is."""
        folder = self._folder(name)
        folder.parent.mkdir(exist_ok=True)
        sync_folder(self.root)
        saved = self._ref(name)
        if saved is None:
            self._hide(folder)
            try:
                os.rename(partial, folder)
            except OSError as error:  # another put of the same name was faster: its copy is the one that counts
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            sync_folder(folder.parent)
            saved = self._ref(name)
        if saved is None:
            raise StorageError(f"{folder} was removed while it was saved", hint="keep other programs out of the store")
        return saved

    def _hide(self, folder: Path) -> None:
        """Rename first: a partly removed checkpoint is never visible."""
        dropped = self.root / ".dropped" / uuid.uuid4().hex
        dropped.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(folder, dropped)
        except FileNotFoundError:
            return
        shutil.rmtree(dropped, ignore_errors=True)


_LEAST_AGE_S = 1.0
"""A put locks its folder a moment after it has created it: a younger one may not be locked yet."""


def _this_host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())


def _locked(partial: Path) -> int | None:
    """Lock the folder of a put while its process is alive: the operating system releases it however the process ends.
    None where the file system has no locks; then only age identifies a leftover."""
    folder = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(folder)
        return None
    return folder


def _is_abandoned(partial: Path) -> bool:
    """Is the process of this put known to be gone? Locks are only trusted on the host that took them."""
    if partial.name.partition("@")[2] != _this_host():
        return False
    try:
        if time.time() - partial.stat().st_mtime < _LEAST_AGE_S:
            return False
        lock = _locked(partial)
    except OSError:
        return False
    if lock is None:
        return False
    os.close(lock)
    return True


_WORD = re.compile(r"[A-Za-z0-9_+=@,-][A-Za-z0-9_+=@,.-]*")


def _check_word(what: str, word: str) -> None:
    """Names become file names: one path component, not hidden, not `..`."""
    if not _WORD.fullmatch(word):
        raise StorageError(f"{what} {word!r} cannot name a checkpoint", hint="use letters, digits, '-', '_' and '.'")


def _write_manifest(folder: Path, job: str, step: int, manifest: Manifest) -> None:
    with open(folder / "manifest.json", "w", encoding="utf-8") as file:
        json.dump({"job": job, "step": step, "holds": json.loads(manifest.to_json())}, file, sort_keys=True, indent=1)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(folder)


def _read_manifest(folder: Path) -> tuple[str, int, Manifest]:
    plain = json.loads((folder / "manifest.json").read_bytes())
    try:
        return str(plain["job"]), int(plain["step"]), Manifest.from_json(json.dumps(plain["holds"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"its manifest is invalid: {error!r}") from error


def _children(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _missing(ref: CheckpointRef, what: str) -> CheckpointMissing:
    return CheckpointMissing(
        f"the checkpoint of job {ref.job!r} at step {ref.step} ({ref.name}) {what}",
        hint="the job resumes from the checkpoint before it",
    )


def _explained(error: OSError, doing: str) -> StorageError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageError(
            f"the disk is full: cannot {doing}",
            hint="free some space or save less; earlier checkpoints are safe",
        )
    return StorageError(f"cannot {doing}: {error.strerror or error}", hint="check the folder and its permissions")
