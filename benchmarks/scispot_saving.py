"""How much longer jobs take with checkpoints and preemptions, by checkpoint schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.rows import cpu_s
from benchmarks.scispot_lives import Draws, Split
from shoestring.models.lifetimes.checkpoint_schedule import CheckpointSchedule, Costs, solve, young_daly_s
from shoestring.models.lifetimes.groups import scaled
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.models.lifetimes.survival_table import SurvivalTable

COSTS = Costs(save_s=60.0, restart_s=120.0)
LENGTHS_H = tuple(range(1, 13))
AGES_H = (0, 4, 8, 12, 16, 20)

WRONG = {"three times the hazard": 3.0, "a third of the hazard": 1 / 3}

Schedule = Callable[[float, float], float | None]
"""From the work left and the machine's age: seconds of work to the next save; None releases the machine."""


def every(interval_s: float) -> Schedule:
    return lambda left_s, _: min(left_s, interval_s)


def contestants(split: Split) -> dict[str, Schedule]:
    longest_s = max(LENGTHS_H) * HOUR_S
    printed = SurvivalTable.of(split.printed, until_s=24 * HOUR_S)
    return {
        "programme": programme(split).next_save_s,
        "programme on Eq. 1": solve(printed, longest_s, COSTS).next_save_s,
        **{
            f"programme, {name}": solve(
                SurvivalTable.of(scaled(split.saved.pooled, times), until_s=24 * HOUR_S), longest_s, COSTS
            ).next_save_s
            for name, times in WRONG.items()
        },
        "Young-Daly, fair": every(young_daly_s(COSTS.save_s, split.saved.pooled.mean_s())),
        "Young-Daly, 1 h": every(young_daly_s(COSTS.save_s, HOUR_S)),
        "none": lambda left_s, _: left_s,
    }


def programme(split: Split) -> CheckpointSchedule:
    return solve(split.fitted, max(LENGTHS_H) * HOUR_S, COSTS)


def table_s(split: Split) -> float:
    """CPU seconds to solve one."""
    return cpu_s(lambda: programme(split))


def played_s(schedule: Schedule, draws: Draws, seed: int, work_s: float, age_s: float) -> float:
    """One job. New machines have the same lifetimes for every schedule with this seed, in order of use."""
    rng = np.random.default_rng(seed)
    passed_s, left_s, ends_s = 0.0, work_s, draws.older_than(rng, age_s)
    while left_s > 1e-6:
        ahead_s = schedule(left_s, age_s)
        if ahead_s is not None:
            stretch_s = ahead_s + (COSTS.save_s if ahead_s < left_s - 1e-6 else 0.0)
            if age_s + stretch_s < ends_s:
                passed_s, age_s, left_s = passed_s + stretch_s, age_s + stretch_s, left_s - ahead_s
                continue
            passed_s += ends_s - age_s
        passed_s += COSTS.restart_s
        age_s, ends_s = 0.0, draws.older_than(rng, 0.0)
    return passed_s


def overheads(splits: Sequence[Split], repeats: int) -> dict[str, dict[int, float]]:
    """Of each contestant, by the length of the job: how much longer than the work itself, over all ages."""
    found: dict[str, dict[int, list[float]]] = {}
    for number, split in enumerate(splits):
        draws = Draws(split.truth, seed=number)
        for name, schedule in contestants(split).items():
            for hours in LENGTHS_H:
                work_s = hours * HOUR_S
                longer = [
                    played_s(schedule, draws, seed, work_s, age * HOUR_S) / work_s - 1
                    for seed in range(repeats)
                    for age in AGES_H
                ]
                found.setdefault(name, {}).setdefault(hours, []).extend(longer)
    return {name: {hours: float(np.mean(x)) for hours, x in lengths.items()} for name, lengths in found.items()}
