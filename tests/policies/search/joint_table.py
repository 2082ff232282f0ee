"""A made-up problem over hyper-parameters and machines, for simulated runs: how good, how fast, on how much data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import shoestring as ss
from shoestring.kernel.types import Config, Listing
from shoestring.world.sim.workload import Curve, SnapshotAt, Workload

SPEED = {"m5.large": 1.0, "m5.xlarge": 1.9, "c5.xlarge": 2.3}
STEPS = 2


def error(config: Config, fraction: float = 1.0) -> float:
    whole = 0.05 + 0.03 * abs(float(config["rate"] or 0) + 3) + 0.8 / float(config["width"] or 1)
    return float(whole * fraction**-0.2)


def step_s(config: Config, machine: str, fraction: float = 1.0) -> float:
    machines = int(config.get("machines") or 1)
    return 40.0 * float(config["width"] or 1) * fraction / (SPEED[machine] * machines**0.8)


def workload(fraction: float = 1.0, *, tells: tuple[float, ...] = ()) -> Workload:
    """Its latency grows with the width. It reports snapshots of the fractions in `tells` as it passes them."""

    def curve(config: Config) -> Curve:
        return lambda _: {"error": error(config, fraction), "latency": float(config["width"] or 1) / 4}

    def seconds(config: Config, listing: Listing, slots: int) -> float:  # noqa: ARG001
        return step_s(config, listing.offer.machine, fraction)

    def snapshots(config: Config) -> list[SnapshotAt]:
        return [
            SnapshotAt(STEPS * part / fraction, part, {"error": error(config, part), "latency": 1.0})
            for part in tells
            if part < fraction
        ]

    whole = Workload(curve=curve, seconds_per_step=seconds, checkpoint_gb=0.01, snapshots=snapshots if tells else None)
    return replace(whole, on_fraction=partial(workload, tells=tells))


def study(**changes: object) -> ss.Study:
    """A simulated run of the recipe, on three machine types; arguments of `simulate` are added or replaced."""
    asked: dict[str, object] = {
        "space": {
            "rate": ss.integer(-5, -1),
            "width": ss.choice(16, 32, 64),
            "machines": ss.machine_count(1, 2),
            "kind": ss.machine_type(*SPEED),
        },
        "minimize": "error",
        "recipe": "trimtuner",
        "constraints": ["cost <= $0.05", "latency <= 10"],
        "fractions": [1 / 16, 1 / 4, 1],
        "max_steps": STEPS,
        "trials": 16,
        "budget": "$20",
        "deadline": "2d",
        "seed": 3,
        "workload": workload(),
    }
    return ss.simulate(**{**asked, **changes})
