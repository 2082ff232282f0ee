"""Studies of the placement benchmark: trials share what a zone has, and no rule beats the fluid bound."""

from __future__ import annotations

import random

import numpy as np
import pytest

from benchmarks.placement_field import CONTESTANTS
from benchmarks.placement_fluid import fluid_usd
from benchmarks.placement_product import play_product
from benchmarks.placement_studies import studies
from benchmarks.placement_study import Study, first_free, play_study
from benchmarks.placement_traces import TICK_S, Recording
from benchmarks.placement_world import Look
from shoestring.policies.placement.slack.guarantee import ON_DEMAND, WAIT, MachineChoice, SlackChoice, Switching

SWITCHING = Switching(setup_s=120.0, restore_s=60.0, save_s=0.0, look_s=TICK_S)
TICK_USD = TICK_S / 3600


def recording(*zones: str, usd: tuple[float, ...] = (1.0, 2.0)) -> Recording:
    """Each zone as a string of ticks, a digit for the machines there are."""
    counts = np.array([[int(tick) for tick in zone] for zone in zones])
    prices = np.repeat(np.array(usd[: len(zones)])[:, None], counts.shape[1], axis=1)
    return Recording("by hand", counts, prices, 3.0)


def study(there: Recording, *, work: tuple[int, ...], deadline: int) -> Study:
    return Study(there, 0, tuple(ticks * TICK_S for ticks in work), deadline * TICK_S, SWITCHING)


def made_up(seed: int) -> Study:
    """Two or three zones whose machines come and go, and five trials."""
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    ticks, zones = 400, rng.randint(2, 3)
    counts = np.repeat(draw.integers(0, 5, (zones, ticks // 20)), 20, axis=1) * (draw.random((zones, 1)) < 0.9)
    prices = np.repeat(draw.uniform(0.3, 1.2, (zones, 1)), ticks, axis=1)
    deadline = rng.randint(100, 300)
    work = tuple(rng.randint(20, deadline - 15) * TICK_S for _ in range(5))
    return Study(Recording("made up", counts, prices, 1.5), 50, work, deadline * TICK_S, SWITCHING)


def spot(look: Look) -> SlackChoice:
    return SlackChoice(MachineChoice.SPOT, 0) if look.task.market.up[0, look.tick] else WAIT


# -- the bound ---------------------------------------------------------------------------------------------------------
def test_work_flows_to_the_cheapest_machines_first() -> None:
    there = recording("1111", "1111")  # four machine-ticks at one dollar, two of the more expensive at two
    assert study(there, work=(3, 3), deadline=4).fluid_usd == pytest.approx((4 * 1.0 + 2 * 2.0) * TICK_USD)


def test_a_trial_cannot_be_on_two_machines_at_once() -> None:
    there = recording("2200")  # four machine-ticks, but this trial can use two of them only
    assert study(there, work=(4,), deadline=4).fluid_usd == pytest.approx((2 * 1.0 + 2 * 3.0) * TICK_USD)
    assert study(there, work=(2, 2), deadline=4).fluid_usd == pytest.approx(4 * 1.0 * TICK_USD)


def test_work_that_does_not_fit_into_the_time_has_no_bound() -> None:
    with pytest.raises(ValueError, match="cannot be done"):
        fluid_usd(np.ones((1, 4), dtype=int), np.ones((1, 4)), 3.0, [5 * TICK_S])


@pytest.mark.parametrize("seed", range(12))
def test_no_rule_beats_the_fluid_bound_and_no_deadline_is_missed(seed: int) -> None:
    made = made_up(seed)
    least = made.fluid_usd
    for make in CONTESTANTS.values():
        outcome = play_study(made, make)
        assert outcome.usd >= least - 1e-9
        assert outcome.missed == 0


# -- machines are shared -----------------------------------------------------------------------------------------------
def test_the_second_trial_sees_what_is_left() -> None:
    there = recording("1" * 30)
    done = play_study(study(there, work=(9, 9), deadline=30), lambda: spot)  # one after the other
    assert done.missed == 0
    assert done.usd == pytest.approx(2 * 10 * TICK_USD)
    assert play_study(study(there, work=(9, 9), deadline=19), lambda: spot).missed == 1


def test_the_last_in_the_queue_loses_its_machine_first() -> None:
    seen: list[tuple[int, MachineChoice]] = []

    def recorded(look: Look) -> SlackChoice:
        seen.append((look.tick, look.now.here))
        return spot(look)

    play_study(study(recording("2221222222222222"), work=(9, 9), deadline=16), lambda: recorded)
    assert [here for tick, here in seen if tick == 3] == [MachineChoice.SPOT, MachineChoice.WAIT]
    assert [here for tick, here in seen if tick == 5] == [MachineChoice.SPOT, MachineChoice.SPOT]


def test_on_demand_machines_are_not_shared() -> None:
    done = play_study(study(recording("0" * 20), work=(9, 5, 3), deadline=12), lambda: lambda _: ON_DEMAND)
    assert done.missed == 0
    assert done.usd == pytest.approx(3.0 * (10 + 6 + 4) * TICK_USD)


def test_freed_places_are_used_again() -> None:
    assert first_free(set()) == 1
    assert first_free({1, 2, 4}) == 3


def test_a_view_from_a_place_is_the_market_of_that_place() -> None:
    there = recording("0121", "2222")
    view = there.market((2, 3))
    assert view.up.tolist() == [[False, False, True, False], [False] * 4]
    assert view.ages.tolist() == [[0, 0, 1, 0], [0] * 4]
    assert view.record(0, 3).losses == 1


# -- what is played ----------------------------------------------------------------------------------------------------
def test_studies_can_be_done_and_fit_into_their_recording() -> None:
    counts = np.full((2, 3000), 16)
    there = Recording("made up", counts, np.ones((2, 3000)), 3.0)
    for made, _ in studies([there], 20, seed=1):
        assert max(made.work_s) < made.deadline_s
        assert made.start + made.deadline_s / TICK_S <= 3000
        assert min(made.work_s) >= max(made.work_s) / 4


def test_a_recording_of_availability_only_gets_eight_machines_per_zone() -> None:
    there = Recording("made up", np.ones((2, 3000), dtype=int), np.ones((2, 3000)), 3.0)
    made, _ = next(studies([there], 1, seed=0))
    assert made.recording.most == 8


def test_the_product_rents_no_more_than_there_is() -> None:
    """Two machines for three trials that fit behind each other: spot at a third of the price, and no deadline is
    missed."""
    there = recording("2" * 200)
    made = study(there, work=(30, 30, 30), deadline=150)
    done = play_product(made)
    assert done.missed == 0
    assert made.fluid_usd <= done.usd < 3.0 * 90 * TICK_USD


def test_the_product_survives_preemptions() -> None:
    there = recording("3" * 20 + "1" * 20 + "0" * 20 + "3" * 140)
    done = play_product(study(there, work=(40, 40, 40), deadline=150))
    assert done.missed == 0
