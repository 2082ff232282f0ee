"""Where a run is ended early, and what that saves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.space.constraints import parse_all
from shoestring.space.early_end import PastRun, ends
from shoestring.values import Config
from tests.optimizer.synthetic import FRACTIONS, LIMIT_USD, error, optimizer, quality, run, seconds, usd

SLOWEST = 300.0
"""A third of the candidates takes so many times as long as in the table."""


def test_on_the_full_data_the_end_is_the_limit() -> None:
    constraints = parse_all(["cost <= 0.10", "time <= 2h", "recall >= 0.8", "latency <= 5", "cost >= 0.01"])
    assert ends(constraints, 1.0) == {"cost": 0.10, "seconds": 7200.0}


@given(st.floats(1e-3, 1.0), st.floats(1e-3, 1e3), st.floats(0.61, 1.5))
def test_a_feasible_run_is_not_ended_early_if_costs_shrink_as_assumed(s: float, limit: float, power: float) -> None:
    """A full run that just satisfies the constraint, and costs that fall with the data by any power from 0.61 on."""
    assert limit * s**power <= ends(parse_all(f"cost <= {limit!r}"), s)["cost"]


LIMIT_S = 600.0
LIMITED = parse_all(["time <= 10m"])


def end_s(fraction: float, *past: PastRun) -> float:
    return ends(LIMITED, fraction, past)["seconds"]


def finished(fraction: float, seconds: float) -> PastRun:
    return PastRun(fraction, {"seconds": seconds})


def killed(fraction: float, seconds: float = 100.0) -> PastRun:
    return PastRun(fraction, {"seconds": seconds}, killed=True)


def test_while_no_run_has_finished_each_kill_but_the_first_doubles_the_end_on_its_fraction_up_to_the_limit() -> None:
    soonest = LIMIT_S * (1 / 16) ** 0.6
    ended = [end_s(1 / 16, *[killed(1 / 16)] * count) for count in range(6)]
    assert ended == pytest.approx([soonest, soonest, 2 * soonest, 4 * soonest, LIMIT_S, LIMIT_S])
    assert end_s(1 / 4, killed(1 / 16), killed(1 / 16)) == end_s(1 / 4)
    assert end_s(1 / 16, *[killed(1 / 16)] * 5, finished(1 / 16, 1.0)) == pytest.approx(soonest)


def test_the_fastest_finished_run_shows_what_may_not_shrink_with_the_data() -> None:
    slow, fast, fixed = finished(1 / 16, 300.0), finished(1 / 16, 130.0), 1.5 * 130
    assert end_s(1 / 16, slow, fast) == pytest.approx(fixed + (600 - fixed) / 16)
    assert end_s(1 / 4, slow, fast) == pytest.approx(fixed + (600 - fixed) / 4)
    assert end_s(1 / 16, finished(1.0, 130.0)) == end_s(1 / 16, fast)
    assert end_s(1 / 16, finished(1 / 16, 5.0)) == end_s(1 / 16)
    assert end_s(1 / 16, finished(1 / 16, 590.0)) == LIMIT_S


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(1e-3, 0.999))
def test_no_feasible_run_is_ended_once_one_has_finished_whatever_part_of_the_time_is_fixed(
    fixed: float, fast: float, s: float
) -> None:
    """seconds = fixed + rest * s: the slowest that satisfies the limit, after any run with the same fixed part."""
    fixed_s = LIMIT_S * fixed
    slowest = fixed_s + (LIMIT_S - fixed_s) * s
    assert slowest <= end_s(s, finished(s, fixed_s + fast * (LIMIT_S - fixed_s) * s)) + 1e-9


def test_a_fixed_part_of_the_cost_is_learned_by_the_optimizer() -> None:
    """Half of the limit is spent on loading: the first runs are ended too soon, and no others."""
    one, kills = optimizer(constraints="time <= 1000", usd_per_hour=None), 0
    for _ in range(12):
        suggestion = one.ask()
        took = 500.0 + 400.0 * suggestion.fraction
        if took > suggestion.end_at["seconds"]:
            one.tell(suggestion, seconds=suggestion.end_at["seconds"], killed=True)
            kills += 1
        else:
            one.tell(suggestion, error=error(suggestion.config, suggestion.fraction), seconds=took)
    assert kills <= 4
    assert one.best().feasible


def test_the_last_run_is_on_the_full_data_if_none_was() -> None:
    one = optimizer()
    for _ in range(4):
        run(one, one.ask())
    last = one.ask(last=True)
    assert last.fraction == 1.0
    assert "the last run" in last.why
    assert optimizer().ask(last=True).fraction == FRACTIONS[0], "without any result there is no incumbent"


def test_the_optimizer_suggests_where_to_end_a_run_and_the_baselines_use_the_limit_itself() -> None:
    ours, baseline = optimizer().ask(), optimizer(method="eic").ask()
    assert ours.fraction == FRACTIONS[0]
    assert ours.end_at == {"cost": pytest.approx(LIMIT_USD * FRACTIONS[0] ** 0.6)}
    assert baseline.end_at == {"cost": LIMIT_USD}
    assert optimizer(constraints=()).ask().end_at == {}


def slow(config: Config) -> bool:
    return config["width"] == 256


def spent_until_good(give_up: bool, seed: int) -> float:
    """What it costs until a good feasible candidate was measured."""
    one, bill = optimizer(seed=seed), 0.0
    for _ in range(60):
        suggestion = one.ask()
        config, fraction = suggestion.config, suggestion.fraction
        factor = SLOWEST if slow(config) else 1.0
        cost = factor * usd(config, fraction)
        most = suggestion.end_at["cost"] if give_up else LIMIT_USD
        if cost > most:
            one.tell(suggestion, seconds=factor * seconds(config, fraction) * most / cost, killed=True)
        else:
            one.tell(suggestion, error=error(config, fraction), seconds=factor * seconds(config, fraction))
        bill += min(cost, most)
        done = one.observations[-1]
        if done.fraction == 1.0 and not done.killed and quality(config) > 0.9 and not slow(config):
            return bill
    return float("inf")


def test_early_stopping_saves_where_some_candidates_are_much_slower() -> None:
    pairs = [(spent_until_good(True, seed), spent_until_good(False, seed)) for seed in range(4)]
    assert sum(early for early, _ in pairs) < 0.8 * sum(late for _, late in pairs)
