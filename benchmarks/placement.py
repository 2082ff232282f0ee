"""Spot machines with a deadline, on recorded availability: the slack policy against on-demand machines, greedy, Uniform
Progress and the optimum in hindsight. Then studies of sixteen trials against the fluid bound (`placement_fluid`).

    python -m benchmarks.placement [--quick] [--json FILE] [--choosing] [--held-out FOLDER]

`--choosing` uses the recordings for choosing instead of those for reporting.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks import datasets
from benchmarks import placement_studies as in_studies
from benchmarks.placement_field import CONTESTANTS
from benchmarks.placement_fuzz import misses
from benchmarks.placement_omniscient import least_usd
from benchmarks.placement_traces import TICK_S, Market, markets, recordings
from benchmarks.placement_world import Task, play
from benchmarks.rows import Row, parser, publish
from shoestring.errors import DataError
from shoestring.models.zone_survival import survival
from shoestring.policies.placement.slack.guarantee import Switching

WORK_H = (6, 12, 24, 48)
DEADLINES = (1.1, 1.25, 1.5, 2.0)
SETUPS_S = (120.0, 600.0)
HORIZONS_H = (1, 3, 6, 12)
WARM_UP_H = 48
"""Of probes before a job starts, where the recording is long enough."""
PROCESSES = 2


@dataclass(frozen=True)
class Result:
    market: str
    work_h: float
    deadline: float
    setup_s: float
    usd: dict[str, float]
    """Of each contestant, and of "omniscient"."""
    missed: int


def jobs(markets: Sequence[Market], count: int, seed: int) -> Iterator[Task]:
    """Jobs of all sizes, deadlines and set-ups, started at random; half of them may use one zone only."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        market = rng.choice(markets)
        if market.zones > 1 and rng.random() < 0.5:
            market = market.only(rng.randrange(market.zones))
        work_h, deadline, setup_s = rng.choice(WORK_H), rng.choice(DEADLINES), rng.choice(SETUPS_S)
        latest = market.ticks - int(work_h * deadline * 3600 / TICK_S) - 3
        earliest = min(int(WARM_UP_H * 3600 / TICK_S), latest)
        if earliest < 0:
            continue  # the recording is shorter than the job may take
        made += 1
        switching = Switching(setup_s=setup_s, restore_s=0.3 * setup_s, save_s=5.0, look_s=TICK_S)
        yield Task(market, rng.randint(earliest, latest), work_h * 3600.0, work_h * deadline * 3600.0, switching)


def played(task: Task) -> Result:
    outcomes = {name: play(task, make()) for name, make in CONTESTANTS.items()}
    usd = {name: outcome.usd for name, outcome in outcomes.items()}
    return Result(
        task.market.name,
        task.work_s / 3600,
        task.deadline_s / task.work_s,
        task.switching.setup_s,
        usd | {"omniscient": least_usd(task)},
        sum(not outcome.met for outcome in outcomes.values()),
    )


def brier_skill(markets: Sequence[Market], horizon_h: float) -> float:
    """Of `survival` over the base rate, the best constant in hindsight."""
    said, was = [], []
    ahead = int(horizon_h * 3600 / TICK_S)
    every = int(1800 / TICK_S)
    for market in markets:
        for zone in range(market.zones):
            for tick in range(every, market.ticks - ahead, every):
                if market.up[zone, tick]:
                    age_h = float(market.ages[zone, tick]) * TICK_S / 3600
                    said.append(survival(horizon_h, age_h, market.record(zone, tick)))
                    was.append(bool(market.up[zone, tick : tick + ahead + 1].all()))
    truth = np.array(was, dtype=float)
    return float(1 - np.mean((np.array(said) - truth) ** 2) / np.mean((truth.mean() - truth) ** 2))


def against(results: Sequence[Result], name: str, base: str) -> list[float]:
    return [result.usd[name] / result.usd[base] for result in results]


def table(results: Sequence[Result]) -> None:
    print(f"{'dollars against the omniscient':<34}{'mean':>8}{'p95':>8}   by deadline {DEADLINES}, set-up {SETUPS_S} s")
    for name in CONTESTANTS:
        ratios = against(results, name, "omniscient")
        parts = [[x for x in results if abs(x.deadline - share) < 1e-9] for share in DEADLINES]
        parts += [[x for x in results if x.setup_s == setup_s] for setup_s in SETUPS_S]
        shown = "".join(
            f"{statistics.fmean(against(part, name, 'omniscient')):>8.3f}" if part else "" for part in parts
        )
        print(f"{name:<34}{statistics.fmean(ratios):>8.3f}{np.percentile(ratios, 95):>8.3f}   {shown}")


def rows(results: Sequence[Result], missed: int, fuzzed: int, skills: dict[int, float]) -> list[Row]:
    slack, progress = against(results, "slack", "omniscient"), against(results, "uniform progress", "omniscient")
    zones = f"{len(results)} jobs on {len({result.market for result in results})} markets"
    mean = statistics.fmean
    return [
        Row("slack_cost_vs_omniscient", mean(slack), "x", f"{zones}, mean; goal <= 1.08"),
        Row(
            "slack_cost_vs_uniform_progress",
            mean(slack) / mean(progress),
            "x",
            f"uniform progress is at {mean(progress):.3f} of the omniscient; goal <= 0.95",
        ),
        Row("slack_p95_vs_omniscient", float(np.percentile(slack, 95)), "x", "95th percentile; goal <= 1.3"),
        Row("deadline_misses", missed, "misses", f"of {len(results) * len(CONTESTANTS) + fuzzed:,} jobs; goal 0"),
        Row(
            "zone_survival_brier_skill",
            mean(skills.values()),
            "skill",
            "over the base rate, " + ", ".join(f"{h} h: {skill:.3f}" for h, skill in skills.items()) + "; goal >= 0.12",
        ),
        Row(
            "cost_vs_ondemand", mean(against(results, "slack", "on demand")), "x", "slack against on-demand only, mean"
        ),
    ]


def main() -> None:
    asked = parser(__doc__.partition("\n\n")[0])
    asked.add_argument("--choosing", action="store_true", help="the recordings for choosing, not those for reporting")
    datasets.add_held_out_option(asked)
    args = asked.parse_args()
    datasets.refuse_choosing_on_held_out(args.choosing)
    role: datasets.Role = "choosing" if args.choosing else "reporting"
    try:
        played_on = recordings(role)
    except DataError as missing:
        print(f"skipped: {missing}")
        return
    datasets.announce("availability", [recording.name for recording in played_on], role)
    seen = [market for recording in played_on for market in markets(recording)]
    count, fuzzed, studies = (40, 1_000, 4) if args.quick else (400, 50_000, 40)
    batches = [range(first, first + 500) for first in range(0, fuzzed, 500)]
    with ProcessPoolExecutor(PROCESSES) as pool:
        results = list(pool.map(played, jobs(seen, count, seed=4), chunksize=5))
        missed = sum(pool.map(misses, batches)) + sum(result.missed for result in results)
        of_studies = list(pool.map(in_studies.played, in_studies.studies(played_on, studies, seed=4)))
    skills = {horizon: brier_skill(seen, horizon) for horizon in HORIZONS_H}
    table(results)
    in_studies.table(of_studies)
    publish([*rows(results, missed, fuzzed, skills), *in_studies.rows(of_studies)], args.json)


if __name__ == "__main__":
    main()
