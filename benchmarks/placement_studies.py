"""Studies of sixteen trials against the fluid bound: the studies, the contestants, and the rows.

Every fourth one is also run by the product itself (`placement_product`).
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.placement_field import CONTESTANTS
from benchmarks.placement_product import play_product
from benchmarks.placement_study import Study, StudyOutcome, play_study
from benchmarks.placement_traces import TICK_S, Recording
from benchmarks.rows import Row
from shoestring.policies.placement.slack.guarantee import Switching

TRIALS = 16
LONGEST_H = (6, 12, 24)
SHORTEST = 0.25
"""Every trial has at least this much of the longest one's work."""
DEADLINES = (1.1, 1.25, 1.5, 2.0)
"""Of all trials, in lengths of the longest."""
SETUPS_S = (120.0, 600.0)
UNCOUNTED = 8
"""The assumed capacity of a zone where only availability was recorded: sixteen in two zones."""
WARM_UP = int(48 * 3600 / TICK_S)
PRODUCTS = {
    "the product: slack": "slack",
    "the product: greedy": "greedy",
    "the product: uniform progress": "uniform_progress",
}
"""What the product's placements are called here."""
PRODUCT = "the product: slack"
PRODUCT_EVERY = 4


@dataclass(frozen=True)
class StudyResult:
    recording: str
    deadline: float
    setup_s: float
    fluid_usd: float
    outcomes: dict[str, StudyOutcome]
    """By contestant; not every contestant runs all studies."""


def studies(recordings: Sequence[Recording], count: int, seed: int) -> Iterator[tuple[Study, bool]]:
    """Random starts, and whether the product runs it too. A recording with capacities is used four times as often as
    one without: recorded capacities weigh more than assumed ones."""
    rng = random.Random(seed)
    weights = [4 if recording.most > 1 else 1 for recording in recordings]
    made = 0
    while made < count:
        recording = counted(rng.choices(recordings, weights)[0])
        longest_s, setup_s = rng.choice(LONGEST_H) * 3600.0, rng.choice(SETUPS_S)
        deadline_s = round(longest_s * rng.choice(DEADLINES) / TICK_S) * TICK_S
        latest = recording.counts.shape[1] - round(deadline_s / TICK_S)
        if latest < 0:
            continue  # the recording is shorter than the study may take
        others_s = (longest_s * rng.uniform(SHORTEST, 1.0) for _ in range(TRIALS - 1))
        study = Study(
            recording,
            rng.randint(min(WARM_UP, latest), latest),
            (longest_s, *others_s),
            deadline_s,
            Switching(setup_s=setup_s, restore_s=0.3 * setup_s, save_s=5.0, look_s=TICK_S),
        )
        yield study, made % PRODUCT_EVERY == 0
        made += 1


def counted(recording: Recording) -> Recording:
    return recording if recording.most > 1 else replace(recording, counts=UNCOUNTED * recording.counts)


def played(asked: tuple[Study, bool]) -> StudyResult:
    study, by_product = asked
    outcomes = {name: play_study(study, make) for name, make in CONTESTANTS.items()}
    if by_product:
        outcomes |= {name: play_product(study, placement) for name, placement in PRODUCTS.items()}
    return StudyResult(
        study.recording.name,
        study.deadline_s / max(study.work_s),
        study.switching.setup_s,
        study.fluid_usd,
        outcomes,
    )


def ratios(results: Sequence[StudyResult], name: str) -> list[float]:
    """Dollars against the fluid bound, where this contestant ran."""
    return [result.outcomes[name].usd / result.fluid_usd for result in results if name in result.outcomes]


def table(results: Sequence[StudyResult]) -> None:
    print(f"{'studies: dollars against the fluid bound':<42}{'mean':>8}{'median':>8}{'p95':>8}{'studies':>9}")
    both = [result for result in results if PRODUCT in result.outcomes]
    lines = [(name, name, results) for name in CONTESTANTS]
    lines += [("slack, where the product played too", "slack", both), *((name, name, both) for name in PRODUCTS)]
    for label, name, part in lines:
        if found := ratios(part, name):
            shown = (statistics.fmean(found), statistics.median(found), float(np.percentile(found, 95)))
            print(f"{label:<42}" + "".join(f"{value:>8.3f}" for value in shown) + f"{len(found):>9}")


def rows(results: Sequence[StudyResult]) -> list[Row]:
    found = [_cost_row(results, name, name.replace(" ", "_")) for name in ("slack", "greedy", "uniform progress")]
    found.append(_cost_row(results, "on demand", "ondemand"))
    missed = sum(result.outcomes[name].missed for result in results for name in CONTESTANTS)
    trials = len(results) * len(CONTESTANTS) * TRIALS
    found.append(Row("study_deadline_misses", missed, "misses", f"of {trials:,} trials of all contestants; goal 0"))
    both = [result for result in results if PRODUCT in result.outcomes]
    if both:
        beside = statistics.fmean(ratios(both, "slack"))
        found.append(_cost_row(both, PRODUCT, "product", f"; the programme of the tick world {beside:.3f} on the same"))
        late = {setup: sum(x.outcomes[PRODUCT].missed for x in both if x.setup_s == setup) for setup in SETUPS_S}
        told = ", ".join(f"{count} with set-ups of {setup / 60:g} min" for setup, count in late.items())
        found.append(
            Row(
                "product_study_deadline_misses",
                sum(late.values()),
                "misses",
                f"of {len(both) * TRIALS} trials: {told}; goal 0",
            )
        )
    return found


def _cost_row(results: Sequence[StudyResult], name: str, word: str, beside: str = "") -> Row:
    found = ratios(results, name)
    worst = float(np.percentile(found, 95))
    how = f"{len(found)} studies of {TRIALS} trials, mean; 95 % below {worst:.2f}{beside}"
    return Row(f"{word}_study_cost_vs_fluid_bound", statistics.fmean(found), "x", how)
