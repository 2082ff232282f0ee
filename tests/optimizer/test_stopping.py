"""Stop conditions and their reasons."""

from __future__ import annotations

import shoestring as ss
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.optimizer.stopping import Budget, Deadline, Iterations, NoImprovement, why_stop


def told(losses: list[float], fraction: float = 1.0) -> Optimizer:
    one = Optimizer({"x": ss.integer(0, 9)}, minimize="loss", fractions=[0.5, 1.0], method="random")
    for x, loss in enumerate(losses):
        one.tell(Suggestion({"x": x}, fraction), loss=loss, cost=0.1, seconds=60.0)
    return one


def test_without_observations_there_is_no_reason_to_stop() -> None:
    assert why_stop(told([]), Iterations(1), Budget(0.1), Deadline(1.0), NoImprovement(1)) is None


def test_it_stops_after_so_many_runs_so_much_money_or_so_much_time() -> None:
    three = told([0.3, 0.2, 0.1])
    assert why_stop(three, Iterations(3)) == "3 runs are done"
    assert why_stop(three, Iterations(4)) is None
    assert why_stop(three, Budget(0.31)) is None
    assert why_stop(three, Budget(0.29)) == "$0.30 of $0.29 spent"
    assert why_stop(three, Deadline(181.0)) is None
    assert why_stop(three, Deadline(180.0)) == "runs took 3m of 3m"
    assert why_stop(three, Deadline(180.0, at_once=2)) is None


def test_the_first_reason_is_given() -> None:
    assert why_stop(told([0.3, 0.2]), Iterations(5), Deadline(100.0), Budget(0.1)) == "runs took 2m of 1m40"


def test_it_stops_when_the_best_measured_has_not_improved_for_some_runs() -> None:
    assert why_stop(told([0.3, 0.1, 0.2, 0.2]), NoImprovement(3)) is None
    assert why_stop(told([0.3, 0.1, 0.2, 0.2]), NoImprovement(2)) == "2 runs have not improved on what was measured"
    assert why_stop(told([0.3, 0.1, 0.2, 0.0]), NoImprovement(2)) is None


def test_runs_on_data_fractions_alone_prove_nothing() -> None:
    assert why_stop(told([0.3, 0.1, 0.2, 0.2], fraction=0.5), NoImprovement(1)) is None
