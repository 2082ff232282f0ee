"""`python -m tests.storm --signals N`: storms over recipes, functions and commands, with seeds printed."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.storm.case import cases, twin
from tests.storm.storm import storm


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--signals", type=int, default=100)
    asked.add_argument("--per-case", type=int, default=25, help="signals to each study")
    asked.add_argument("--minutes", type=float, default=float("inf"), help="no further signals after that")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--first", type=int, default=0, help="the number of the case to begin with")
    asked.add_argument("--keep-going", action="store_true", help="after a finding")
    args = asked.parse_args()
    until = time.monotonic() + 60 * args.minutes
    sent, found, attacks, number, controllers = 0, 0, Counter[str](), args.first, 0
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="storm-"))
    print(f"in {root}, seed {args.seed}")
    while sent < args.signals and time.monotonic() < until and (args.keep_going or not found):
        everything = cases(args.seed + number // len(cases(0)))
        case = everything[number % len(everything)]
        undisturbed = twin(case, root / f"{number}-twin")
        outcome = storm(case, root / str(number), undisturbed, min(args.per_case, args.signals - sent), until=until)
        sent += outcome.signals
        controllers += outcome.controllers
        attacks.update(outcome.attacks)
        found += len(outcome.broken)
        print(f"case {number} ({case}): {outcome.signals} signals, {outcome.controllers} controllers", flush=True)
        for sentence in outcome.broken:
            print(f"  FOUND {sentence}", flush=True)
        if not outcome.broken:
            shutil.rmtree(root / str(number))
            shutil.rmtree(root / f"{number}-twin")
        number += 1
    print(f"{sent} signals in {number - args.first} studies, {controllers} controllers, {found} findings,", end=" ")
    print(f"{time.monotonic() - began:.0f} s")
    for words, count in sorted(attacks.items()):
        print(f"  {count:5} {words}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
