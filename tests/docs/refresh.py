"""Write down anew what the commands in the documentation print:  python -m tests.docs.refresh [DOCUMENT...]

Only blocks whose output is compared are touched, and lines behind a `...` are left to the author. Look at the diff.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.markdown import DOCUMENTS
from tests.docs.running import Done, matches, run


def refresh(document: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        stale = [done for done in run(document, Path(folder)) if _stale(done)]
    lines = document.read_text(encoding="utf-8").splitlines()
    for done in reversed(stale):
        assert done.command is not None
        begin = done.block.at + done.block.lines.index(f"$ {done.command.line}") + 1
        lines[begin : begin + len(done.command.output)] = done.printed
    document.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(stale)


def _stale(done: Done) -> bool:
    if done.command is None or done.block.varies or "..." in done.command.output:
        return False
    return not matches(done.command.output, done.printed)


if __name__ == "__main__":
    for path in [Path(word).resolve() for word in sys.argv[1:]] or DOCUMENTS:
        print(f"{path.name}: {refresh(path)} outputs changed")
