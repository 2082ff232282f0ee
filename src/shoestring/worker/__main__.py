"""`python -m shoestring.worker SEGMENT_FOLDER`: run one segment, once."""

from __future__ import annotations

import sys
from pathlib import Path

from shoestring.worker.supervisor import supervise

if __name__ == "__main__":
    supervise(Path(sys.argv[1]))
