"""Trials that queue for few machines, with hardly more time than the queue takes: studies that end short of a trial,
and what they cost.

    python -m benchmarks.placement_queue [--quick] [--json FILE]

Simulated: 24 trials of 10 steps of 60 s, four machines, four interruptions an hour. A worker of two slots on machines
with three wastes a slot of each; the same study with slots that divide must end as often in time, for as many trials
run at once.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

from benchmarks.rows import Row, arguments, publish
from shoestring.api import simulate
from shoestring.space.parameters import uniform
from shoestring.world.sim.workload import Workload

TRIALS = 24
DEADLINES_MIN = (68, 70, 72)
"""Six rounds of ten minutes are 60; machines must come up, and trials start."""
SEEDS, QUICK_SEEDS = 24, 6
KINDS = {"slack": (2, 3), "slack, slots that divide": (1, 1), "on demand": (2, 3)}
"""Slots of a worker, and of a machine."""

WORKLOAD = Workload(curve=lambda _: lambda step: {"loss": 1 / step}, seconds_per_step=lambda *_: 60.0)


class Queued(NamedTuple):
    finished: int
    """Trials done by the deadline."""
    usd: float


def queued(placement: str, slots: int, machine_slots: int, deadline_min: int, seed: int) -> Queued:
    study = simulate(
        workload=WORKLOAD,
        name="queue",
        space={"x": uniform(0.0, 1.0)},
        minimize="loss",
        recipe="random",
        trials=TRIALS,
        max_steps=10,
        budget=500,
        deadline=f"{deadline_min}m",
        slots=slots,
        max_machines=4,
        market={"kind": "modern", "interruptions_per_hour": 4, "slots": machine_slots, "seed": seed},
        options={"placement": placement},
        seed=seed,
    )
    return Queued(sum(job.status == "finished" for job in study.state.jobs.values()), study.spent)


def main() -> None:
    args = arguments(__doc__.partition("\n\n")[0])
    seeds = range(QUICK_SEEDS if args.quick else SEEDS)
    rows = []
    for kind, (slots, machine_slots) in KINDS.items():
        placement = "on_demand" if kind == "on demand" else "slack"
        for deadline_min in DEADLINES_MIN:
            done = [queued(placement, slots, machine_slots, deadline_min, seed) for seed in seeds]
            short = sum(study.finished < TRIALS for study in done)
            usd = statistics.fmean(study.usd for study in done)
            name = kind.replace(", ", "_").replace(" ", "_")
            how = f"of {len(seeds)}, {slots} slots each on machines with {machine_slots}"
            rows.append(Row(f"{name}_short_at_{deadline_min}m", short, "studies", how))
            rows.append(Row(f"{name}_usd_at_{deadline_min}m", usd, "USD", f"mean {how}"))
    publish(rows, args.json)


if __name__ == "__main__":
    main()
