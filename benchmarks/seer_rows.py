"""The rows of the elastic benchmark: the goals, and whether every contestant used its resources."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.rows import Row
from benchmarks.seer_arena import Outcome
from benchmarks.seer_contestants import CONTESTANTS, DEFAULT
from benchmarks.seer_scores import Estimate, Scores

LEAST_MODELLED = 0.15
"""Of the trials of a search with a model, in every cell."""
_RATIOS = (
    ("regret_ratio_default_vs_seer", DEFAULT, "seer", 0.75),
    ("regret_ratio_default_vs_hypersched", DEFAULT, "hypersched", 0.85),
    ("regret_ratio_default_vs_asha_tpe", DEFAULT, "asha_tpe", 0.90),
    ("regret_ratio_corrected_vs_printed", "seer", "seer_as_printed", 0.85),
)


def promised(scores: Scores, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """One row for each goal that the contestants of this run can meet or miss."""
    there = scores.regret.keys()
    over = f"{len(scores.tasks)} tasks x {len(scores.cells)} cells"
    for row, name, other, goal in _RATIOS:
        if {name, other} <= there:
            yield from _ratio(row, scores.ratio(name, other), f"{name} over {other}, {over}; goal <= {goal:.2f}")
    if {DEFAULT, "asha_tpe"} <= there:
        worst, cell = scores.worst_cell(DEFAULT, "asha_tpe")
        yield Row("worst_cell_vs_asha_tpe", worst, "ratio", f"in {cell}; goal <= 1.00")
    if DEFAULT in there:
        yield from _of_default(scores, [outcome for outcome in outcomes if outcome.contestant == DEFAULT])
    overruns = sum(outcome.overran for outcome in outcomes)
    yield Row("overruns", overruns, "runs", f"of {len(outcomes)}: dearer than the budget or later than the deadline")


def _ratio(name: str, estimate: Estimate, against: str) -> Iterator[Row]:
    yield Row(name, estimate.value, "ratio", against)
    yield Row(f"{name}_low", estimate.low, "ratio", "lower end of the 95 % interval over tasks")
    yield Row(f"{name}_high", estimate.high, "ratio", "upper end of the 95 % interval over tasks")


def _of_default(scores: Scores, mine: Sequence[Outcome]) -> Iterator[Row]:
    turns = sorted(ms for outcome in mine for ms in outcome.turns_ms)
    p95 = turns[int(0.95 * len(turns))]
    yield Row("decision_p95_ms", p95, "ms", f"CPU of {len(turns)} turns with a look at the search; goal <= 50")
    yield Row("decision_mean_ms", statistics.fmean(turns), "ms", "the same turns")
    error = statistics.fmean(outcome.speedup_error for outcome in mine)
    yield Row("lambda_error", error, "share", "of the learned speed-up of 4 slots, mean over runs; goal <= 0.10")
    others = [name for name in scores.regret if name != DEFAULT]
    if others:
        best = {cell: scores.best_of(others, cell) for cell in scores.cells}
        rates = {cell: scores.win_rate(DEFAULT, name, cell) for cell, name in best.items()}
        told = ", ".join(f"{cell} {rate:.2f} ({best[cell]})" for cell, rate in rates.items())
        yield Row("win_rate_default_vs_best_baseline_per_cell", statistics.fmean(rates.values()), "share", told)


def details(scores: Scores, outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """Mean regret of every contestant, per cell and per family of tasks, and the use of their clusters."""
    for name in scores.regret:
        mine = [outcome for outcome in outcomes if outcome.contestant == name]
        yield _regret(f"regret_{name}", scores.of_all(name))
        for cell in scores.cells:
            yield _regret(f"regret_{name}_{cell}", scores.of_cell(name, cell))
        for family in scores.families:
            yield Row(f"regret_{name}_{family}", scores.of_family(name, family), "regret", f"tasks of {family} alone")
        yield Row(f"busy_{name}", statistics.fmean(o.busy for o in mine), "share", "of paid slot-time spent training")
        yield Row(f"modelled_{name}", statistics.fmean(o.modelled for o in mine), "share", "of trials from a model")
        yield Row(f"spent_{name}", statistics.fmean(o.spent_share for o in mine), "share", "of the budget")


def _regret(name: str, estimate: Estimate) -> Row:
    return Row(name, estimate.value, "regret", f"95 % over tasks: {estimate.low:.3f} to {estimate.high:.3f}")


def starving(outcomes: Sequence[Outcome]) -> list[str]:
    """Contestants that did not use their resources: money left over, machines idle, a model hardly used."""
    found = []
    for name in dict.fromkeys(outcome.contestant for outcome in outcomes):
        contestant = CONTESTANTS[name]
        for cell in sorted({outcome.cell for outcome in outcomes}):
            mine = [outcome for outcome in outcomes if (outcome.contestant, outcome.cell) == (name, cell)]
            spent = statistics.fmean(outcome.spent_share for outcome in mine)
            busy = statistics.fmean(outcome.busy for outcome in mine)
            modelled = statistics.fmean(outcome.modelled for outcome in mine)
            if spent < contestant.least_spent:
                found.append(f"{name} in {cell}: {spent:.0%} of the budget spent")
            if busy < contestant.least_busy:
                found.append(f"{name} in {cell}: machines busy {busy:.0%} of their time")
            if contestant.from_model and modelled < LEAST_MODELLED:
                found.append(f"{name} in {cell}: {modelled:.0%} of the trials drawn from the model")
    return found
