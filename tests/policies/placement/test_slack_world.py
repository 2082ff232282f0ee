"""The tick world of the placement benchmark: costs computed by hand, and no rule beats the optimum that knows the
future."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.placement_contestants import Slack, greedy, on_demand_only, uniform_progress
from benchmarks.placement_fuzz import random_task
from benchmarks.placement_omniscient import least_usd
from benchmarks.placement_traces import TICK_S, Market
from benchmarks.placement_world import Look, Task, play
from shoestring.policies.placement.slack.guarantee import MachineChoice, SlackChoice, Switching

SWITCHING = Switching(setup_s=120.0, restore_s=60.0, save_s=0.0, look_s=TICK_S)


def market(*zones: str, usd: tuple[float, ...] = (1.0, 1.0)) -> Market:
    """Each zone as a string of ticks, `#` where it has machines."""
    up = np.array([[tick == "#" for tick in zone] for zone in zones])
    return Market("by hand", up, np.repeat(np.array(usd[: len(zones)])[:, None], up.shape[1], axis=1), 3.0)


def task(zones: Market, *, work: int, deadline: int, notice_s: float = 0.0) -> Task:
    return Task(zones, 0, work * TICK_S, deadline * TICK_S, SWITCHING, save_every_s=1e9, notice_s=notice_s)


def spot(look: Look) -> SlackChoice:
    return SlackChoice(MachineChoice.SPOT, 0) if look.task.market.up[0, look.tick] else SlackChoice(MachineChoice.WAIT)


def test_on_demand_costs_the_set_up_and_the_work() -> None:
    outcome = play(task(market("." * 30), work=9, deadline=20), on_demand_only)
    assert outcome.usd == pytest.approx(3.0 * 10 * TICK_S / 3600)
    assert outcome.finished_s == 10 * TICK_S
    assert outcome.met


def test_a_preemption_loses_what_was_not_saved() -> None:
    lossy = market("#####." + "#" * 30)  # a set-up, four ticks of work lost, one without machines, a set-up, nine
    outcome = play(task(lossy, work=9, deadline=30), spot)
    assert outcome.finished_s == (5 + 1 + 1 + 9) * TICK_S
    assert outcome.usd == pytest.approx(15 * TICK_S / 3600)
    warned = play(task(lossy, work=9, deadline=30, notice_s=120.0), spot)
    assert warned.finished_s == (5 + 1 + 1 + 6) * TICK_S  # three of the four were saved in time


def test_a_move_is_made_before_the_old_machine_is_left() -> None:
    zones = market("#" * 30, "#" * 30, usd=(2.0, 1.0))
    moves = play(
        task(zones, work=9, deadline=30), lambda look: SlackChoice(MachineChoice.SPOT, 1 if look.tick >= 3 else 0)
    )
    # set-up and two ticks there, half a tick beside the new one's provisioning, half a tick of restoring
    assert moves.finished_s == (1 + 2 + 0.5 + 0.5 + 6.5) * TICK_S
    assert moves.usd == pytest.approx((2.0 * 3.5 + 1.0 * 7.5) * TICK_S / 3600)


def test_the_optimum_waits_for_the_machine_that_lasts() -> None:
    zones = market("##.##.##." + "#" * 21)
    assert least_usd(task(zones, work=9, deadline=30)) == pytest.approx(10 * TICK_S / 3600)
    # With no time to wait: a tick of work on spot while the on-demand machine is set up, eight on demand.
    assert least_usd(task(zones, work=9, deadline=10)) == pytest.approx((2 * 1.0 + 9 * 3.0) * TICK_S / 3600)


@pytest.mark.parametrize("seed", range(30))
def test_no_rule_is_cheaper_than_the_optimum(seed: int) -> None:
    made_up = random_task(random.Random(seed))
    ticks = int(made_up.work_s / TICK_S)
    job = Task(made_up.market, 0, ticks * TICK_S, made_up.deadline_s // TICK_S * TICK_S, SWITCHING)
    least = least_usd(job)
    for contestant in (on_demand_only, greedy, uniform_progress, Slack()):
        outcome = play(job, contestant)
        assert outcome.usd >= least - 1e-9 or not outcome.met


def test_records_know_the_past_only() -> None:
    zones = market("##..##" + "#" * 24, "######" + "." * 24)
    changed = Market("another future", zones.up.copy(), zones.usd_per_hour, 3.0)
    changed.up[:, 10:] = ~changed.up[:, 10:]
    for zone in range(2):
        assert zones.record(zone, 9) == changed.record(zone, 9)
        assert zones.young_record(zone, 9) == changed.young_record(zone, 9)
        assert zones.elsewhere(zone, 9) == changed.elsewhere(zone, 9)
    assert zones.any_zone(9) == changed.any_zone(9)
    assert zones.record(0, 9).losses == 1
    assert zones.record(0, 9).returns == 1
