"""The model draws where good trials lie: better than chance, always inside the space, fast, and only once it has seen
enough. The sampler reads a study for it, and says so."""

from __future__ import annotations

import math
import random
import re
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.kernel import decisions as d
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.hyperband import Hyperband
from shoestring.policies.search.run_to_completion import Sampled
from shoestring.policies.search.samplers.model_based import TpeSampler
from shoestring.policies.search.samplers.tpe import MOST_GOOD, MOST_OTHERS, as_row, evenly, good_count, suggest
from shoestring.space.space import Space, choice, constant, integer, log, uniform
from tests.policies.search.studies import finish, play_out, running, statuses, study
from tests.space.test_space import spaces

MIXED = Space(
    params={
        "kind": choice("sgd", "adam", "rms"),
        "lr": log(1e-6, 1.0),
        "momentum": uniform(0.5, 0.99, when={"kind": "sgd"}),
        "batch": integer(8, 512, log=True),
        "layers": integer(1, 6),
        "seed": constant(7),
    }
)


def tuned(config) -> float:
    """Best with sgd, lr 1e-3, momentum 0.9, batch 32 and 3 layers."""
    kind = abs(config["momentum"] - 0.9) if config["kind"] == "sgd" else 0.5
    distance = (math.log10(config["lr"]) + 3) ** 2 * 0.2 + abs(math.log2(config["batch"]) - 5) * 0.1
    return kind + distance + abs(config["layers"] - 3) * 0.1


def bowl(config) -> float:
    return sum((value - 0.3) ** 2 for value in config.values())


def valley(config) -> float:
    """Good only where both fit together."""
    return (config["x"] - config["y"]) ** 2 * 10 + (config["x"] - 0.8) ** 2


FUNCTIONS = {
    "mixed": (MIXED, tuned),
    "bowl": (Space(params={name: uniform(0, 1) for name in "abcd"}), bowl),
    "valley": (Space(params={"x": uniform(0, 1), "y": uniform(0, 1)}), valley),
}


def best_of(space: Space, value, *, seed: int, trials: int = 50, startup: int = 10) -> float:
    """The best value of a study in which one trial follows the other."""
    seen = []
    for number in range(trials):
        rng = random.Random(f"{seed}/{number}")
        if number < startup:
            config = space.sample(rng)
        else:
            seen.sort(key=lambda pair: pair[0])
            good = good_count(number, 0.15)
            rows = [row for _, row in seen]
            config = suggest(space, rows[:good], rows[good:], rng, candidates=24)
        space.check(config)
        seen.append((value(config), as_row(space, config)))
    return min(found for found, _ in seen)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_model_finds_clearly_better_values_than_chance(name: str) -> None:
    space, value = FUNCTIONS[name]
    drawn = [best_of(space, value, seed=seed) for seed in range(12)]
    by_chance = [best_of(space, value, seed=seed, startup=50) for seed in range(12)]
    assert median(drawn) < 0.6 * median(by_chance)
    assert sum(ours < theirs for ours, theirs in zip(drawn, by_chance, strict=True)) >= 9


@settings(max_examples=150, deadline=None)
@given(spaces(), st.integers(0, 2**32), st.integers(0, 30), st.integers(0, 30))
def test_what_is_suggested_is_always_in_the_space(space: Space, seed: int, good: int, others: int) -> None:
    rng = random.Random(seed)
    rows = [as_row(space, space.sample(rng)) for _ in range(good + others)]
    space.check(suggest(space, rows[:good], rows[good:], rng, candidates=5))


def test_a_parameter_is_modelled_over_the_trials_that_had_it() -> None:
    rng = random.Random(1)
    configs = [MIXED.sample(rng) for _ in range(200)]
    good = [config for config in configs if config["kind"] == "sgd" and config["momentum"] > 0.9]
    others = [config for config in configs if config not in good]
    rows = [[as_row(MIXED, config) for config in part] for part in (good, others)]
    drawn = [suggest(MIXED, *rows, rng, candidates=24) for _ in range(50)]
    assert sum(config["kind"] == "sgd" for config in drawn) > 40
    assert median(config["momentum"] for config in drawn if "momentum" in config) > 0.88


def test_a_trial_that_was_given_may_lie_outside_the_space() -> None:
    row = as_row(MIXED, {"kind": "lion", "lr": 7.0, "batch": 9, "layers": "many"})
    assert [math.isnan(place) for place in row] == [True, True, False, True, True, True]  # as the space orders them
    MIXED.check(suggest(MIXED, [row], [row], random.Random(1), candidates=3))


def test_few_are_good_and_of_a_long_ranking_some_of_every_rank_are_looked_at() -> None:
    assert [good_count(count, 0.15) for count in (1, 10, 100, 100_000)] == [1, 2, 15, MOST_GOOD]
    picked = evenly(range(10_025), MOST_OTHERS, after=25)
    assert (len(picked), picked[0], picked[1]) == (MOST_OTHERS, 25, 25 + 10_000 // MOST_OTHERS)
    assert evenly(range(5), 10, after=3) == [3, 4]
    assert evenly([], 10) == []


# -- in a study ----------------------------------------------------------------------------------------------------
def origins(run) -> list[str]:
    return [x.why for entry in run.entries for x in entry.decisions if isinstance(x, d.AddJob)]


SEARCHES = {
    "tpe": Sampled(TpeSampler()),
    "asha_tpe": Asha(sampler=TpeSampler()),
    "bohb": Hyperband(sampler=TpeSampler(random_share=1 / 3)),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_model_is_consulted_and_the_machine_is_busy(name: str, direction: str) -> None:
    run = study(SEARCHES[name], trials=60, direction=direction)
    sign = 1.0 if direction == "minimize" else -1.0
    while len(run.state.jobs) < 60:
        assert len(running(run)) == 4
        job = running(run)[0]
        finish(run, job, sign * abs(run.state.jobs[job].config["x"] - 0.3))
    by_model = [re.search(r"proposed by the TPE model of (\d+) trials", why) for why in origins(run)]
    jobs = list(run.state.jobs.values())
    assert not any(by_model[:10])
    assert sum(map(bool, by_model)) > (25 if name == "bohb" else 40)
    assert all(int(match[1]) >= 10 for match in by_model if match)
    for job, match in zip(jobs, by_model, strict=True):
        at_random = run.state.the_spec.space.sample(run.view.fixed_rng(f"config:{job.id}"))
        assert (job.config == at_random) == (match is None)
    distances = [abs(job.config["x"] - 0.3) for job, match in zip(jobs, by_model, strict=True) if match]
    assert median(distances) < 0.1  # chance: 0.27


def test_failed_and_diverged_trials_are_bad() -> None:
    run = study(Sampled(TpeSampler(startup=5)), places=1, trials=60, max_failures=0)
    while jobs := running(run):
        x = run.state.jobs[jobs[0]].config["x"]
        if x < 0.35:
            run.end(jobs[0], "failed", step=0)
        else:
            finish(run, jobs[0], math.nan if x < 0.7 else 1.0)
    drawn = [job.config["x"] for job in list(run.state.jobs.values())[30:]]
    assert sum(x >= 0.7 for x in drawn) > 20


def test_the_model_is_of_the_largest_step_with_enough_trials() -> None:
    """Values before the last step say nothing: only a model of the last one can know that 0.8 is best."""
    run = study(Asha(grace_steps=1, eta=2, sampler=TpeSampler(startup=5)), trials=200)
    play_out(run, lambda job, step: abs(run.state.jobs[job].config["x"] - 0.8) if step == 9 else 1.0, random.Random(1))
    assert sum(statuses(run).values()) == 200
    late = [abs(job.config["x"] - 0.8) for job in list(run.state.jobs.values())[120:]]
    assert median(late) < 0.15  # chance: 0.3


def test_trials_sampled_at_once_are_spread_out() -> None:
    crowd = study(Sampled(TpeSampler()), places=30, trials=60)
    for job in running(crowd):
        finish(crowd, job, abs(crowd.state.jobs[job].config["x"] - 0.3))
    drawn = sorted(job.config["x"] for job in list(crowd.state.jobs.values())[40:])
    assert drawn[-1] - drawn[0] > 0.15


def test_a_lost_memo_changes_nothing() -> None:
    remembering, forgetful = (study(SEARCHES["asha_tpe"], trials=40) for _ in range(2))
    for run in (remembering, forgetful):
        while jobs := running(run):
            if run is forgetful:
                run.state.memos.clear()
            finish(run, jobs[0], abs(run.state.jobs[jobs[0]].config["x"] - 0.3))
    assert remembering.entries == forgetful.entries
