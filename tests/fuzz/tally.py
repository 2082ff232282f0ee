"""What was played: the counts that say how much a run of the fuzzer is worth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tests.fuzz.check import Outcome
from tests.fuzz.draw import mixes


class Tally:
    def __init__(self) -> None:
        self.studies = self.refused = self.entries = 0
        self.findings: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._played = Counter(dict.fromkeys(mixes(), 0))

    def add(self, outcome: Outcome) -> None:
        self._refusals.update(map(_kind, outcome.refusals))
        if outcome.attempt is None:
            self.refused += 1
            return
        self.studies += 1
        self.entries += outcome.entries
        self._played[mixes()[outcome.seed % len(mixes())]] += 1
        self._seen.update(outcome.seen)
        self.findings.update({finding.what for finding in outcome.findings})

    def lines(self) -> Iterator[str]:
        least = min(self._played.values())
        yield f"{self.studies:,} studies played, {self.entries:,} journal entries"
        yield f"{len(self._played):,} combinations of recipe, placement and checkpointing, each at least {least} times"
        yield from (f"{count:7,} {what}" for what, count in self._seen.most_common())
        refusals = sum(self._refusals.values())
        yield f"{refusals:,} requests refused and drawn again ({self.refused} given up), most often:"
        yield from (f"{count:7,} {what}" for what, count in self._refusals.most_common(12))
        found = ", ".join(f"{what}: {count}" for what, count in self.findings.most_common())
        yield f"findings: {found or 'none'}"


def _kind(refusal: str) -> str:
    """The sentence without its numbers."""
    return re.sub(r"\$?\d[\d.,e+-]*", "#", refusal)[:100]
