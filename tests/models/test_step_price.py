"""What a step costs on a preemptible machine, against a simulation of many stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.models.step_cost import (
    Overheads,
    printed_usd_of_an_hour,
    printed_usd_per_step,
    rate_per_s,
    stay_usd,
    usd_per_useful_step,
    useful_s,
)

HOUR_S = 3600.0


def test_the_printed_price_is_the_papers() -> None:
    assert printed_usd_of_an_hour(0.25, 0.4) == pytest.approx(0.3)
    assert printed_usd_per_step(90.0, 0.25, 0.4) == pytest.approx(90.0 * 0.75 * 0.4 / 3600)


def test_in_print_a_machine_that_never_does_a_step_is_the_best_and_corrected_it_is_the_worst() -> None:
    assert printed_usd_per_step(90.0, 1.0, 0.4) == 0.0
    dead_at_once, alive = usd_per_useful_step(90.0, 100, [1.0, 0.05], 0.4, overheads=Overheads(start_s=300.0))
    assert dead_at_once > 5 * alive


def test_where_preempted_machines_are_free_the_value_of_time_decides() -> None:
    refunds = {"refund_within_s": HOUR_S}
    slow = Overheads(start_s=300.0)
    dead_at_once, alive = usd_per_useful_step(90.0, 100, [1.0, 0.05], 0.4, overheads=slow, **refunds)
    assert dead_at_once < alive
    in_a_hurry = Overheads(start_s=300.0, hour_usd=0.05)
    dead_at_once, alive = usd_per_useful_step(90.0, 100, [1.0, 0.05], 0.4, overheads=in_a_hurry, **refunds)
    assert dead_at_once > alive


def test_a_machine_that_is_never_preempted_costs_its_time_and_its_overheads() -> None:
    overheads = Overheads(start_s=50.0, save_s=2.0, every_s=100.0)
    price = usd_per_useful_step(10.0, 60, 0.0, 3.6, overheads=overheads)
    assert price == pytest.approx((50.0 + 600.0 * 1.02) * 3.6 / 3600 / 60)


def test_half_of_a_step_longer_than_the_notice_is_lost_with_the_machine() -> None:
    finished, cut = usd_per_useful_step([100.0, 100.0], 1000, 0.9, 0.4, notice_s=[120.0, 30.0])
    assert cut > 1.02 * finished
    finished, cut = usd_per_useful_step([100.0, 100.0], 1000, 0.0, 0.4, notice_s=[120.0, 30.0])
    assert cut == pytest.approx(finished)


@pytest.mark.parametrize("refund_within_s", [0.0, 60.0, HOUR_S])
@pytest.mark.parametrize("chance", [0.02, 0.4, 0.95])
@pytest.mark.parametrize("stay_s", [600.0, 2 * HOUR_S])
def test_dollars_and_useful_time_are_those_of_many_simulated_stays(chance, stay_s, refund_within_s) -> None:
    rng = np.random.default_rng(0)
    overheads = Overheads(start_s=45.0, save_s=5.0, every_s=300.0)
    rate = rate_per_s(chance)
    lifetimes = rng.exponential(1.0 / rate, size=200_000)
    stays = np.minimum(lifetimes, stay_s)
    billed = np.where((lifetimes < stay_s) & (lifetimes < refund_within_s), 0.0, stays) * 0.5 / HOUR_S
    trained = np.maximum(0.0, stays - 45.0) / overheads.per_trained_s
    assert stay_usd(rate, stay_s, 0.5, refund_within_s) == pytest.approx(billed.mean(), rel=0.02, abs=1e-5)
    assert useful_s(rate, stay_s, overheads) == pytest.approx(trained.mean(), rel=0.02)


def test_without_a_notice_unsaved_work_is_lost() -> None:
    kept = Overheads(every_s=600.0, saved_on_notice=True)
    lost = Overheads(every_s=600.0, saved_on_notice=False)
    assert useful_s(rate_per_s(0.5), HOUR_S, lost) < useful_s(rate_per_s(0.5), HOUR_S, kept)
    assert useful_s(rate_per_s(0.0), HOUR_S, lost) == pytest.approx(useful_s(rate_per_s(0.0), HOUR_S, kept))


@given(
    step_s=st.floats(0.01, 1e4),
    steps=st.integers(1, 10_000),
    chance=st.floats(0.0, 1.0),
    price=st.floats(1e-4, 100.0),
    refund=st.sampled_from([0.0, 60.0, HOUR_S]),
    notice=st.booleans(),
)
def test_it_is_a_price_for_any_machine_and_grows_with_what_the_machine_costs(
    step_s, steps, chance, price, refund, notice
) -> None:
    words = {"refund_within_s": refund, "overheads": Overheads(saved_on_notice=notice)}
    usd = float(usd_per_useful_step(step_s, steps, chance, price, **words))
    assert usd > 0.0 or (refund and chance > 0.5)
    assert not math.isnan(usd)
    assert float(usd_per_useful_step(step_s, steps, chance, 2 * price, **words)) >= usd


@given(chance=st.floats(0.0, 0.99), step_s=st.floats(1.0, 600.0))
def test_without_refunds_a_machine_that_is_preempted_more_often_is_never_cheaper(chance, step_s) -> None:
    rarely = usd_per_useful_step(step_s, 100, chance / 2, 1.0)
    often = usd_per_useful_step(step_s, 100, chance, 1.0)
    assert often >= rarely * (1 - 1e-9)


def test_arrays_give_the_same_as_single_values() -> None:
    rng = np.random.default_rng(1)
    step_s, chance, price = rng.uniform(1, 100, 50), rng.random(50), rng.uniform(0.1, 3, 50)
    together = usd_per_useful_step(step_s, 40, chance, price, refund_within_s=HOUR_S)
    alone = [
        float(usd_per_useful_step(a, 40, b, c, refund_within_s=HOUR_S))
        for a, b, c in zip(step_s, chance, price, strict=True)
    ]
    np.testing.assert_allclose(together, alone)
