"""What the optimizer learns from finished trials: values, constraints, time and cost, as far as they are known."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("optuna")
from optuna.trial import FrozenTrial, TrialState

from shoestring.errors import SpecError
from shoestring.for_optuna.outcomes import Outcome, Reading
from shoestring.space.constraints import parse_all

NOON = datetime(2026, 1, 1, 12)


def trial(state: str = "COMPLETE", *, seconds: float = 8.0, reports: dict[int, float] | None = None, **more: Any):
    return FrozenTrial(
        number=7,
        trial_id=7,
        state=TrialState[state],
        value=0.3 if state == "COMPLETE" else None,
        datetime_start=NOON,
        datetime_complete=NOON + timedelta(seconds=seconds),
        params={},
        distributions={},
        user_attrs=more.get("user_attrs", {}),
        system_attrs=more.get("system_attrs", {}),
        intermediate_values=reports or {},
    )


def reading(*limits: str, priced: bool = False, sized: bool = False) -> Reading:
    return Reading(parse_all(limits), priced, sized)


def told(how: Reading, of: FrozenTrial, *, worst: float = math.nan, optunas: tuple[str, ...] = ()) -> Outcome:
    return how.outcome(of, worst, optunas)


def test_the_clock_is_ignored_unless_a_price_or_a_constraint_needs_it() -> None:
    assert told(reading("latency <= 20"), trial(user_attrs={"latency": 5})).metrics == {"latency": 5.0, "value": 0.3}
    assert told(reading("time <= 10s"), trial()).metrics == {"seconds": 8.0, "value": 0.3}
    assert told(reading(priced=True), trial()).metrics == {"seconds": 8.0, "value": 0.3}


def test_reported_time_and_money_override_the_clock() -> None:
    attrs = {"seconds": 2.0}
    assert told(reading("time <= 10s"), trial(user_attrs=attrs)).metrics["seconds"] == 2.0
    assert told(reading(priced=True), trial(user_attrs={"cost": 0.1})).metrics == {"cost": 0.1, "value": 0.3}


def test_a_trial_without_time_or_cost_counts_as_ended_early() -> None:
    added_by_hand = trial(seconds=0.0)
    assert told(reading(priced=True), added_by_hand) == Outcome(1.0, {"seconds": 0, "cost": 0, "value": 0.3}, True)
    assert told(reading("cost <= 1"), trial()).killed  # seconds do not say what it cost


def test_a_pruned_trial_counts_as_ended_early_at_its_last_report() -> None:
    pruned = trial("PRUNED", reports={1: 0.9, 4: 0.6})
    assert told(reading(), pruned) == Outcome(1.0, {"value": 0.6}, True)
    assert math.isnan(told(reading(), trial("PRUNED")).metrics["value"])


def test_a_failed_trial_is_no_better_than_the_worst() -> None:
    assert told(reading(), trial("FAIL"), worst=4.0) == Outcome(1.0, {"value": 4.0}, True)


def test_optunas_constraints_are_read_in_both_of_its_forms() -> None:
    both = trial(system_attrs={"constraints": [0.5, -1.0], "constraints:memory": 2.0, "other": 1})
    names = ("constraints:0", "constraints:1", "constraints:memory")
    assert told(reading(), both, optunas=names).metrics == {
        "constraints:0": 0.5,
        "constraints:1": -1.0,
        "constraints:memory": 2.0,
        "value": 0.3,
    }
    assert math.isnan(told(reading(), trial(), optunas=names).metrics["constraints:0"])


def test_a_constraint_may_be_on_the_objective_itself() -> None:
    limited = reading("value <= 0.5")
    limited.require(trial())
    assert told(limited, trial(user_attrs={"value": "something else"})).metrics == {"value": 0.3}


def test_fractions_are_read_where_there_are_any() -> None:
    quarter = trial(user_attrs={"fraction": 0.25})
    assert reading(sized=True).fraction(quarter) == 0.25
    assert reading(sized=True).fraction(trial()) == 1.0
    assert reading().fraction(quarter) == 1.0
    with pytest.raises(SpecError, match="'fraction' of trial 7: 3 is not a data fraction"):
        reading(sized=True).fraction(trial(user_attrs={"fraction": 3}))


@pytest.mark.parametrize("attrs", [{}, {"latency": "fast"}, {"latency": None}])
def test_a_constraint_on_an_unreported_metric_is_named(attrs: dict[str, object]) -> None:
    with pytest.raises(
        SpecError, match=r"latency has a constraint \(latency <= 20\), and trial 7 does not report it"
    ) as caught:
        reading("latency <= 20").require(trial(user_attrs=attrs))
    assert "trial.set_user_attr('latency', ...)" in caught.value.hint


def test_cost_may_follow_from_a_price() -> None:
    reading("cost <= 1", priced=True).require(trial())
    with pytest.raises(SpecError) as caught:
        reading("cost <= 1").require(trial())
    assert "usd_per_hour" in caught.value.hint
