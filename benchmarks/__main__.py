"""Run every benchmark, each in a process of its own so that none inherits the memory of another."""

from __future__ import annotations

import subprocess
import sys

ALL = ("overhead", "simulator", "market", "placement", "seer")


def main() -> int:
    failed = []
    for name in ALL:
        print(f"\n== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
