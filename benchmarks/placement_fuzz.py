"""Random markets, jobs and proposed decisions: no deadline that on-demand machines alone could meet may be missed.

Machines are preempted without notice, far more often than in any recording. Every fourth job is run by the slack
policy; the others propose random decisions, and only the guarantee protects the deadline.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from benchmarks.placement_contestants import Slack
from benchmarks.placement_traces import TICK_S, Market
from benchmarks.placement_world import Chooser, Look, Task, play
from shoestring.policies.placement.slack.guarantee import (
    ON_DEMAND,
    SAVE,
    WAIT,
    MachineChoice,
    SlackChoice,
    Switching,
    guarded,
)


def misses(seeds: Iterable[int]) -> int:
    return sum(not kept(seed) for seed in seeds)


def kept(seed: int) -> bool:
    """Is the deadline of this case met?"""
    rng = random.Random(seed)
    task = random_task(rng)
    return play(task, _at_random(rng) if seed % 4 else Slack()).met


def random_task(rng: random.Random) -> Task:
    setup_s = rng.choice((30.0, 120.0, 300.0, 600.0, 1200.0))
    switching = Switching(
        setup_s=setup_s,
        restore_s=setup_s * rng.uniform(0.0, 1.0),
        save_s=rng.choice((0.0, 10.0, 60.0)),
        look_s=TICK_S,
    )
    work_s = rng.uniform(0.2, 3.0) * 3600
    least_s = work_s + setup_s
    deadline_s = least_s + rng.choice(
        (0.0, 1.0, TICK_S, rng.uniform(0.0, 2.0) * setup_s, rng.uniform(0.0, 1.0) * work_s)
    )
    return Task(
        market=_random_market(rng, int(deadline_s / TICK_S) + 3),
        start=0,
        work_s=work_s,
        deadline_s=deadline_s,
        switching=switching,
        save_every_s=rng.choice((120.0, 600.0, 3600.0)),
        notice_s=0.0,
    )


def _random_market(rng: random.Random, ticks: int) -> Market:
    zones = rng.randint(1, 3)
    draw = np.random.default_rng(rng.randrange(2**32))
    stays, returns = 1 - 0.5 ** rng.uniform(0.3, 6.0), 0.5 ** rng.uniform(0.3, 5.0)
    change = draw.random((zones, ticks))
    up = np.empty((zones, ticks), dtype=bool)
    up[:, 0] = change[:, 0] < 0.5
    for tick in range(1, ticks):
        up[:, tick] = np.where(up[:, tick - 1], change[:, tick] < stays, change[:, tick] < returns)
    prices = np.repeat(draw.uniform(0.1, 1.1, (zones, 1)), ticks, axis=1)
    return Market("made up", up, prices, 1.0)


def _at_random(rng: random.Random) -> Chooser:
    """Random decisions, kept for several ticks or changed at once."""
    patience = rng.choice((0.0, 0.5, 0.9))
    last: list[SlackChoice] = [WAIT]

    def wish(look: Look) -> SlackChoice:
        if rng.random() >= patience:
            zones = look.task.market.up[:, look.tick].nonzero()[0].tolist()
            spot = [SlackChoice(MachineChoice.SPOT, zone) for zone in zones]
            last[0] = rng.choice([WAIT, ON_DEMAND, SAVE, *spot, *spot])
        asked = last[0]
        gone = asked.kind is MachineChoice.SPOT and not look.task.market.up[asked.zone, look.tick]
        return guarded(WAIT if gone else asked, look.now, look.task.switching)

    return wish
