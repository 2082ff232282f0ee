"""The log of a segment: the last few megabytes of what user code printed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from shoestring.worker.task import LOG

MOST_BYTES = 2 << 20


def trim(folder: Path) -> None:
    """Move a log that has grown too long to `log.1.txt`. Writers append, so they go on at the new start."""
    path = folder / LOG
    try:
        if path.stat().st_size > MOST_BYTES:
            shutil.copyfile(path, folder / "log.1.txt")
            os.truncate(path, 0)
    except OSError:
        pass  # a log is not worth a trial
