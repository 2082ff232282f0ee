"""CPU of `shoestring run` on a study of one trial, all its processes counted: controller, supervisor and user code.

`--against SRC` measures another version of the package in turns with this one (the folder that contains `shoestring`).
A process whose parent has ended is given to us, so its CPU time is counted too when it ends: wait4 of a process counts
those that it has waited for.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import shoestring
from benchmarks.rows import Row, as_installed, median_ratio, parser, publish

OURS = Path(shoestring.__file__).parents[1]
_STUDY = """
import shoestring as ss

def train(trial):
    for step in trial.steps():
        trial.report(loss=trial["x"] ** 2 + 1 / step)

ss.tune(train, space={"x": ss.uniform(-1, 1)}, minimize="loss", max_steps=3, trials=1)
"""
_PR_SET_CHILD_SUBREAPER = 36


def run_cpu_s(source: Path = OURS) -> float:
    """CPU seconds of one run by the package in this folder, on this machine and free of charge."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.py"
        study.write_text(_STUDY)
        argv = [str(Path(sys.executable).parent / "shoestring"), "run", str(study)]
        return tree_cpu_s(argv, Path(folder), {**as_installed(), "PYTHONPATH": str(source)})


def tree_cpu_s(argv: list[str], folder: Path, environment: Mapping[str, str]) -> float:
    """CPU seconds, user and system, of a command and of all processes it starts, until the last has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become ours: Linux only
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=folder, env=environment, check=True, capture_output=True)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    asked = parser(__doc__ or "")
    asked.add_argument("--against", type=Path, metavar="SRC", required=True, help="src folder of the other version")
    asked.add_argument("--pairs", type=int, default=20, help="how often each is measured")
    args = asked.parse_args()
    other = args.against.resolve()
    for source in (OURS, other):
        run_cpu_s(source)  # compiles what is not compiled yet
    pairs = 3 if args.quick else args.pairs
    ours, theirs, ratio = median_ratio(run_cpu_s, lambda: run_cpu_s(other), pairs)
    publish(
        [
            Row("run_cpu_one_trial", 1e3 * ours, "ms", "shoestring run, one trial, all processes"),
            Row("run_cpu_one_trial_of_other", 1e3 * theirs, "ms", f"the version in {other}"),
            Row("run_cpu_one_trial_vs_other", ratio, "ratio", f"median of {pairs} pairs, in turns"),
        ],
        args.json,
    )


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"({time.monotonic() - began:.0f} s)")
