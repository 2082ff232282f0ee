"""Run the benchmarks together, each in a process of its own so that none inherits the memory of another.

The longest are reduced here, so that all of them take less than half an hour on two cores. Those that are not here
(earlycurve, revpred, rubberband, spottune, tpe and others) are run by name: python -m benchmarks.spottune
"""

from __future__ import annotations

import subprocess
import sys

ALL: dict[str, tuple[str, ...]] = {
    "overhead": (),
    "simulator": (),
    "market": (),
    "placement": (),
    "lifetimes": (),
    "scispot": (),
    "recommend": (),
    "service": (),
    "seer": ("--seeds", "3"),
}
"""With the options that reduce them."""


def main() -> int:
    failed = []
    quick = "--quick" in sys.argv[1:]
    for name, smaller in ALL.items():
        print(f"\n== {name}", flush=True)
        arguments = [*(() if quick else smaller), *sys.argv[1:]]
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments]).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
