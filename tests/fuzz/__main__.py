"""Play random studies and report what does not hold: `python -m tests.fuzz --minutes 10`, in the repository's root."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator

from tests.fuzz.check import Outcome, study
from tests.fuzz.draw import draft, mixes
from tests.fuzz.shrink import shrunk
from tests.fuzz.tally import Tally

SHOWN_OF_EACH = 3
"""Findings of one kind that are shrunk and shown in full; of the others only the seed."""
SHRINKING_S, SHRINKING_ALONE_S = 5.0, 120.0
"""CPU for shrinking one finding: among many, and with --seed."""


def main() -> int:
    arguments = _arguments()
    if arguments.seed is not None:
        return _show_one(arguments.seed)
    began, tally = time.monotonic(), Tally()
    seeds = range(arguments.first, arguments.first + arguments.studies)
    print(f"seeds from {arguments.first} on; repeat one with --seed SEED", flush=True)
    said = began
    for outcome in _outcomes(seeds, arguments.jobs):
        tally.add(outcome)
        _report(outcome, tally)
        now = time.monotonic()
        if now - said > 60:
            said = now
            print(f"{(now - began) / 60:.0f} min: {tally.studies:,} studies, last seed {outcome.seed}", flush=True)
        if now - began > 60 * arguments.minutes:
            break
    print("\n".join(tally.lines()))
    return bool(tally.findings)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    parser.add_argument("--studies", type=int, default=sys.maxsize, help="stop after so many studies")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="begin with this seed (default: 0)")
    parser.add_argument("--seed", type=int, help="play the study of this seed alone, shrink what fails, show it whole")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    arguments = parser.parse_args()
    if arguments.seed is None and arguments.minutes == float("inf") and arguments.studies == sys.maxsize:
        parser.error("give --minutes, --studies or --seed")
    return arguments


def _outcomes(seeds: range, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(study, seeds)
        return
    mixes()  # once, before the processes are forked
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(study, seeds, chunksize=4)


def _report(outcome: Outcome, tally: Tally) -> None:
    for finding in outcome.findings:
        print(f"seed {outcome.seed} {finding.what}: {finding.detail}", flush=True)
        if tally.findings[finding.what] <= SHOWN_OF_EACH:
            _show_shrunk(outcome, finding.what, SHRINKING_S)


def _show_shrunk(outcome: Outcome, what: str, patience_s: float) -> None:
    small, finding = shrunk(draft(outcome.seed, outcome.attempt or 0), what, patience_s)
    print(f"  shrunk, {finding.what}: {finding.detail}", *small.lines(), sep="\n", flush=True)


def _show_one(seed: int) -> int:
    outcome = study(seed)
    mix = mixes()[seed % len(mixes())]
    print(f"seed {seed}: {mix.recipe}, placement {mix.placement or 'its own'}, checkpointing {mix.checkpointing}")
    print(*(f"  refused: {refusal}" for refusal in outcome.refusals), sep="\n")
    if outcome.attempt is not None:
        print(*draft(seed, outcome.attempt).lines(), sep="\n")
    print(f"{outcome.entries} entries; {', '.join(sorted(outcome.seen))}")
    for finding in outcome.findings:
        print(f"{finding.what}: {finding.detail}", flush=True)
        _show_shrunk(outcome, finding.what, SHRINKING_ALONE_S)
    return bool(outcome.findings)


if __name__ == "__main__":
    sys.exit(main())
