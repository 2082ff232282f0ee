"""What a SIGKILL in the middle of a save leaves behind is removed: when a run starts again, and when it ends.

A checkpoint is invisible until it is whole, so leftovers harm nothing, but each is as large as a checkpoint.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from shoestring.errors import StorageError
from shoestring.kernel.types import SegmentId
from shoestring.storage.checkpoints.directory import STALE_S, DirectoryStore

SAVING = "saving"
"""In the folder of a segment: what user code is writing."""


def sweep_leftovers(run_dir: Path, store: DirectoryStore, open_segments: Collection[SegmentId], *, over: bool) -> str:
    """Remove half-made checkpoints whose process is gone; with `over`, when no worker can be alive, all of them.

    Returns what could not be removed, in a sentence; leftovers never fail a run.
    """
    try:
        store.sweep(older_than_s=0.0 if over else STALE_S)
        segments = run_dir / "segments"
        for name in os.listdir(segments) if segments.is_dir() else ():
            if over or name not in open_segments:
                shutil.rmtree(segments / name / SAVING, ignore_errors=True)
    except (StorageError, OSError) as error:
        return f"leftovers of interrupted saves could not be removed: {error}"
    return ""
