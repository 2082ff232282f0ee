"""The cheapest machines for a fixed schedule: what a forecast counts, and how near the greedy search comes to trying
everything."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.policies.search.rubberband.greedy import cheapest, fastest, of_one_size
from shoestring.policies.search.rubberband.plan import (
    CostModel,
    Round,
    RubberbandPlan,
    Schedule,
    Share,
    forecast,
    latest_of,
    share_of,
    shares,
)


def schedule(*stages: tuple[int, int]) -> Schedule:
    ends = [sum(steps for _, steps in stages[: index + 1]) for index in range(len(stages))]
    return tuple(Round(trials=n, steps=s, until_step=end) for (n, s), end in zip(stages, ends, strict=True))


def cost_model(**changes) -> CostModel:
    """Machines of four slots for $36 an hour, a cent a second; a step takes 100 s; twice the slots are 1.74 times as
    fast; no stragglers."""
    usual = {
        "slots": 4,
        "usd_per_hour": 36.0,
        "billing": "per_second",
        "max_machines": 8,
        "step_s": 100.0,
        "speedup": lambda slots: slots**0.8,
        "spread": 0.0,
        "provision_s": 60.0,
        "start_s": 20.0,
        "release_s": 0.0,
    }
    return CostModel(**{**usual, **changes})


def spent(*machine_seconds: float) -> object:
    return pytest.approx(sum(machine_seconds) / 100, rel=1e-6)


# -- a forecast ----------------------------------------------------------------------------------------------------
def test_a_stage_is_its_machines_coming_up_and_its_waves() -> None:
    plan = forecast(schedule((8, 2)), [Share(1, 1, 4, 440.0)], cost_model())
    assert (plan.seconds, plan.usd) == (60 + 440, spent(440))  # nobody is charged for machines that are not there yet


def test_a_wave_is_start_up_and_training_at_the_speed_of_its_width() -> None:
    narrow, wide = (
        next(s for s in shares(Round(trials=n, steps=2, until_step=2), cost_model(max_machines=1), among=n))
        for n in (8, 1)
    )
    assert narrow == Share(machines=1, slots=1, places=4, train_s=2 * (20 + 200))
    assert wide == Share(machines=1, slots=4, places=1, train_s=pytest.approx(20 + 200 / 4**0.8))


def test_machines_are_released_when_a_stage_needs_fewer_and_waited_for_when_one_needs_more() -> None:
    three = schedule((16, 1), (4, 2), (1, 4))
    chosen = [Share(4, 1, 16, 100.0), Share(1, 1, 4, 200.0), Share(2, 8, 1, 300.0)]
    plan = forecast(three, chosen, cost_model())
    assert [(stage.start, stage.stop) for stage in plan.stages] == [(0, 160), (160, 360), (360, 720)]
    # one machine is held to the end, through the minute in which the second comes up once more
    assert [stage.usd for stage in plan.stages] == [spent(4 * 100), spent(200), spent(360 + 300)]


def test_a_machine_held_for_less_than_a_minute_costs_a_minute() -> None:
    plan = forecast(schedule((8, 1), (1, 1)), [Share(2, 1, 8, 10.0), Share(1, 4, 1, 30.0)], cost_model())
    assert plan.usd == spent(60, 60)
    hourly = forecast(schedule((8, 1)), [Share(2, 1, 8, 10.0)], cost_model(billing="per_hour"))
    assert hourly.usd == spent(3600, 3600)
    assert forecast(schedule((8, 1)), [Share(2, 1, 8, 10.0)], cost_model(billing="free")).usd == 0


def test_machines_in_hand_need_not_be_waited_for() -> None:
    one = schedule((8, 1))
    assert forecast(one, [Share(2, 1, 8, 100.0)], cost_model(), in_hand=2).latest_s == 100
    assert forecast(one, [Share(2, 1, 8, 100.0)], cost_model(), in_hand=1).latest_s == 160
    assert forecast(one, [Share(2, 1, 8, 100.0)], cost_model(), in_hand=5).usd == spent(100, 100)


def test_stragglers_make_stages_longer() -> None:
    assert [round(latest_of(count), 2) for count in (1, 2, 10, 100)] == [0, 0.59, 1.55, 2.5]
    even, uneven = (
        shares(Round(trials=16, steps=4, until_step=4), cost_model(spread=s), among=16)[0] for s in (0.0, 0.2)
    )
    assert even.train_s < uneven.train_s < 1.2 * even.train_s


def test_a_trial_uses_a_share_of_a_machine_or_whole_ones() -> None:
    assert cost_model(slots=4, max_machines=3).widths() == (1, 2, 4, 8, 12)
    assert cost_model(slots=8, worker_slots=2, max_machines=1).widths() == (2, 4, 8)
    assert cost_model(slots=4, max_machines=8, most_slots=8).widths() == (1, 2, 4, 8)


def test_only_as_many_machines_are_considered_as_there_is_work_for() -> None:
    found = shares(Round(trials=10, steps=1, until_step=1), cost_model(max_machines=6, most_slots=1), among=10)
    assert [(share.machines, share.places) for share in found] == [(1, 4), (2, 8), (3, 10)]
    alone = shares(Round(trials=1, steps=1, until_step=1), cost_model(max_machines=6, most_slots=8), among=1)
    assert [(share.machines, share.slots) for share in alone] == [(1, 4), (2, 8)]


# -- the search ----------------------------------------------------------------------------------------------------
def all_plans(stages: Schedule, on: CostModel) -> list[RubberbandPlan]:
    """Every way to give every stage machines and a width, not only those the search considers."""
    menu = [
        [
            share_of(round_, on, machines, width, among=stages[0].trials)
            for machines in range(1, on.max_machines + 1)
            for width in on.widths()
            if width <= machines * on.slots
            if share_of(round_, on, machines, width, among=stages[0].trials).places * width > (machines - 1) * on.slots
        ]
        for round_ in stages
    ]
    return [forecast(stages, chosen, on) for chosen in product(*menu)]


@pytest.mark.parametrize("seed", range(25))
def test_the_greedy_search_comes_within_a_few_percent_of_trying_everything(seed: int) -> None:
    rng = random.Random(seed)
    trials, steps, eta, stages = rng.choice((6, 8, 12, 16)), rng.randint(1, 3), rng.choice((2, 3, 4)), []
    for _ in range(rng.randint(2, 3)):
        stages.append((trials, steps))
        trials, steps = max(1, trials // eta), steps * eta
    power = rng.uniform(0.5, 1.0)
    on = cost_model(
        slots=rng.choice((1, 2, 4)),
        billing=rng.choice(("per_second", "per_second", "per_hour")),
        max_machines=rng.choice((3, 4)),
        step_s=rng.uniform(10, 200),
        speedup=lambda slots: slots**power,
        spread=rng.choice((0.0, 0.1)),
    )
    every = all_plans(schedule(*stages), on)
    shortest = fastest(schedule(*stages), on)
    assert shortest.latest_s == pytest.approx(min(plan.latest_s for plan in every))
    deadline = shortest.latest_s * rng.uniform(1, 3)
    found = cheapest(schedule(*stages), on, deadline)
    assert found is not None
    assert found.latest_s <= deadline
    assert found.usd <= 1.05 * min(plan.usd for plan in every if plan.latest_s <= deadline)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 64), st.integers(2, 4), st.floats(1.0, 4.0), st.floats(0.3, 1.0), st.integers(1, 12))
def test_a_plan_meets_the_deadline_and_beats_every_busy_cluster_of_one_size(
    trials: int, eta: int, slack: float, power: float, machines: int
) -> None:
    stages = [(trials, 1)]
    while stages[-1][0] > 1:
        stages.append((max(1, stages[-1][0] // eta), stages[-1][1] * eta))
    on = cost_model(max_machines=machines, speedup=lambda slots: slots**power)
    deadline = slack * fastest(schedule(*stages), on).latest_s
    plan = cheapest(schedule(*stages), on, deadline)
    assert plan is not None
    assert plan.latest_s <= deadline
    assert all(stage.machines <= machines and stage.slots <= on.most_slots for stage in plan.stages)
    for count in range(1, machines + 1):
        fixed = of_one_size(schedule(*stages), on, count)
        all_busy = all(stage.places * stage.slots > (count - 1) * on.slots for stage in fixed.stages)
        if all_busy and fixed.latest_s <= deadline:  # machines without work are never rented ahead of time
            assert plan.usd <= fixed.usd * (1 + 1e-9)


def test_with_all_the_time_there_is_one_machine_does_it_and_in_a_hurry_clusters_shrink() -> None:
    stages = schedule((64, 1), (16, 4), (4, 16))
    leisurely, hurried = cheapest(stages, cost_model(), 1e6), fastest(stages, cost_model())
    assert leisurely is not None
    assert {stage.machines for stage in leisurely.stages} == {1}
    assert hurried.stages[0].machines == 8
    assert hurried.seconds < leisurely.seconds / 4


def test_no_plan_meets_an_impossible_deadline() -> None:
    stages = schedule((64, 1), (16, 4), (4, 16))
    shortest = fastest(stages, cost_model()).latest_s
    assert cheapest(stages, cost_model(), shortest * 0.99) is None
    assert cheapest(stages, cost_model(), shortest) is not None
