"""Where a run is ended early, and what that saves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.space.constraints import ends, parse_all
from shoestring.values import Config
from tests.optimizer.synthetic import FRACTIONS, LIMIT_USD, error, optimizer, quality, seconds, usd

SLOWEST = 300.0
"""A third of the candidates takes so many times as long as in the table."""


def test_on_the_full_data_the_end_is_the_limit() -> None:
    constraints = parse_all(["cost <= 0.10", "time <= 2h", "recall >= 0.8", "latency <= 5", "cost >= 0.01"])
    assert ends(constraints, 1.0) == {"cost": 0.10, "seconds": 7200.0}


@given(st.floats(1e-3, 1.0), st.floats(1e-3, 1e3), st.floats(0.61, 1.5))
def test_a_feasible_run_is_not_ended_early_if_costs_shrink_as_assumed(s: float, limit: float, power: float) -> None:
    """A full run that just satisfies the constraint, and costs that fall with the data by any power from 0.61 on."""
    assert limit * s**power <= ends(parse_all(f"cost <= {limit!r}"), s)["cost"]


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
