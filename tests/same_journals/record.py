"""Record the journals of all cases:  python -m tests.same_journals.record [CASE...]

Only for a case that is new, or for a change of decisions that was meant. What was recorded before is the promise.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from tests.same_journals.cases import CASES
from tests.same_journals.lines import journal_of

RECORDED = Path(__file__).parent / "recorded"
LIBRARIES = RECORDED / "libraries.json"


def path_of(case: str) -> Path:
    return RECORDED / f"{case}.jsonl.gz"


def recorded(case: str) -> list[bytes]:
    return gzip.decompress(path_of(case).read_bytes()).splitlines()


def libraries() -> dict[str, str]:
    """What the last digits of NumPy and SciPy depend on: releases, and the processor's vector instructions."""
    import numpy
    import scipy

    features = numpy.show_config(mode="dicts")["SIMD Extensions"]["found"]  # type: ignore[call-overload]
    return {"numpy": numpy.__version__, "scipy": scipy.__version__, "simd": " ".join(features)}


def main(names: list[str]) -> None:
    RECORDED.mkdir(exist_ok=True)
    for case in names or CASES:
        lines = journal_of(CASES[case])
        path_of(case).write_bytes(gzip.compress(b"\n".join(lines), mtime=0))
        print(f"{case}: {len(lines)} entries")
    LIBRARIES.write_text(json.dumps(libraries()) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
