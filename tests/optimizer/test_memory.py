"""An optimizer restored from observations, pending runs and memory continues as the original would."""

from __future__ import annotations

import json
import math

import pytest

from shoestring.optimizer.methods.registry import METHODS
from shoestring.optimizer.observations import Observation
from tests.optimizer.synthetic import optimizer, run, space_for


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_restored_optimizer_suggests_what_the_original_would(method: str) -> None:
    one = optimizer(method=method, space=space_for(method))
    for _ in range(7):
        run(one, one.ask())
    under_way = one.ask()
    memory = json.loads(json.dumps(one.memory()))
    other = optimizer(method=method, space=space_for(method))
    for seen in one.observations:
        other.learn(seen)
    other.expect(under_way)
    other.recall(memory)
    assert other.ask() == one.ask()


def test_unknown_metrics_of_a_run_are_nan() -> None:
    one = optimizer()
    for _ in range(4):
        run(one, one.ask())
    lost = one.ask()
    one.learn(Observation(lost.config, lost.fraction, math.nan, {"seconds": math.nan, "cost": math.nan}, True))
    assert one.ask() != lost
    assert math.isfinite(one.best().objective)


def test_it_reports_when_it_is_exhausted() -> None:
    from shoestring.optimizer.optimizer import Optimizer

    one = Optimizer([{"x": 1}], minimize="loss")
    assert not one.exhausted
    one.ask()
    assert one.exhausted
