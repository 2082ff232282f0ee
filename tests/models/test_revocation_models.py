"""Each predictor gives its documented chances, and a saved one gives the same."""

from __future__ import annotations

import math
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from shoestring.errors import DataError, MissingExtra, SpecError
from shoestring.kernel.types import Offer, PriceHistory
from shoestring.models.revocation.features import summary
from shoestring.models.revocation.frequency import EmpiricalFrequency
from shoestring.models.revocation.model import AnyCause, Queries, chance_of
from shoestring.models.revocation.rates import AvailabilityFrequency, InterruptionPrior, per_hour_of
from shoestring.models.revocation.saved import SavedModel, decoded, encoded, fit
from shoestring.models.revocation.scores import scores
from shoestring.models.revocation.trees import exported, fit_trees
from tests.models.revocation_markets import DAY, START, auction, examples, market, offer, question

HOUR = 3600.0


@cache
def saved(name: str = "frequency") -> SavedModel:
    found = examples(auction(), 1500)
    return SavedModel(
        name=name,
        trained_from=START,
        trained_until=START + DAY,
        examples=len(found),
        revoked_share=0.1,
        model=fit(name, found),
    )


# -- frequency ---------------------------------------------------------------------------------------------------------
def test_the_frequency_is_that_of_the_past_with_a_little_prior() -> None:
    queries = question(market([0, 2 * HOUR, 3 * HOUR], [0.2, 0.9, 0.2]), 6 * HOUR, 0.5)
    model = EmpiricalFrequency(prior_chance=0.1, prior_s=2 * HOUR)
    assert model.chance(queries)[0] == pytest.approx((1 + 0.1 * 2) / (4 + 2))


def test_over_a_longer_time_more_leases_end_and_the_prior_is_higher() -> None:
    """Leases could begin in the first two hours and in the fourth; what began later is not decided yet."""
    queries = question(market([0, 2 * HOUR, 3 * HOUR], [0.2, 0.9, 0.2]), 6 * HOUR, 0.5, within_s=2 * HOUR)
    model = EmpiricalFrequency(prior_chance=0.1, prior_s=2 * HOUR)
    assert model.chance(queries)[0] == pytest.approx((2 + (1 - 0.9**2) * 2) / (3 + 2))


def test_a_price_above_the_maximum_gives_a_chance_of_one() -> None:
    queries = question(market([0, HOUR], [0.2, 0.9]), 2 * HOUR, 0.5)
    assert EmpiricalFrequency().chance(queries)[0] == 1.0


# -- rates -------------------------------------------------------------------------------------------------------------
def test_a_published_band_is_a_share_of_a_month() -> None:
    prior = InterruptionPrior.from_bands({"m3": "5-10%"})
    month = prior.chance(question(market([0], [0.2]), HOUR, 0.5, within_s=30 * DAY))
    assert month[0] == pytest.approx(0.075)
    with pytest.raises(SpecError, match="band '5%' is unknown"):
        per_hour_of("5%")


def test_the_rate_of_a_type_overrides_that_of_its_family() -> None:
    prior = InterruptionPrior(per_hour={"m3": 0.1, "m3.large": 0.3, "n1-standard": 0.2}, otherwise_per_hour=0.01)
    google = Offer(provider="gcp", zone="us-central1-a", machine="n1-standard-4", spot=True)
    assert [prior.rate_of(one) for one in (offer("m3.medium"), offer(), offer("c5.large"), google)] == [
        0.1,
        0.3,
        0.01,
        0.2,
    ]
    assert prior.rate_of(Offer(provider="aws", zone="us-east-1a", machine="m3.large", spot=False)) == 0.0
    with pytest.raises(SpecError, match="m3: -1 an hour is not a rate"):
        InterruptionPrior(per_hour={"m3": -1})


def test_availability_up_to_now_gives_a_rate() -> None:
    runs = (
        (START, START + 10 * HOUR, 1),
        (START + 10 * HOUR, START + 12 * HOUR, 0),
        (START + 12 * HOUR, START + 22 * HOUR, 1),
    )
    model = AvailabilityFrequency(runs=((offer(), runs),), prior_per_hour=0.0, prior_h=0.0)
    later = model.chance(question(market([0], [0.2]), 22 * HOUR, 0.5))[0]
    assert later == pytest.approx(1 - math.exp(-1 / 20))
    before = model.chance(question(market([0], [0.2]), 9 * HOUR, 0.5))[0]
    assert before == 0.0, "the loss after ten hours is not known yet"


def test_an_offer_without_a_trace_has_the_prior() -> None:
    model = AvailabilityFrequency(runs=(), prior_per_hour=0.5)
    assert model.chance(question(market([0], [0.2]), HOUR, 0.5))[0] == pytest.approx(1 - math.exp(-0.5))


def test_independent_causes_multiply() -> None:
    queries = question(market([0], [0.2]), HOUR, 0.5)
    half = InterruptionPrior(otherwise_per_hour=math.log(2))
    assert AnyCause((half, half)).chance(queries)[0] == pytest.approx(0.75)


def test_a_single_query_is_at_the_end_of_a_history() -> None:
    history = PriceHistory(offer=offer(), times=(START,), usd_per_hour=(0.1,), until=START + HOUR)
    prior = InterruptionPrior(otherwise_per_hour=1.0)
    assert chance_of(prior, history, on_demand_usd_per_hour=0.3, within_s=1800) == pytest.approx(1 - math.exp(-0.5))


def test_a_horizon_of_zero_is_refused() -> None:
    with pytest.raises(SpecError, match="more than 0 seconds"):
        question(market([0], [0.2]), HOUR, 0.5, within_s=0.0)


# -- trees and regression ----------------------------------------------------------------------------------------------
def test_the_trees_predict_what_scikit_learn_predicts() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    found = examples(auction())
    features = summary(found.queries)
    learner = ensemble.HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(features, found.revoked)
    ours = expit(exported(learner).raw(features))
    np.testing.assert_allclose(ours, learner.predict_proba(features)[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["trees", "logistic"])
def test_a_trained_model_beats_the_base_rate_on_held_out_days(name: str) -> None:
    pytest.importorskip("sklearn")
    markets = auction(days=24)
    found = examples(markets, 6000)
    early = np.flatnonzero(found.queries.at + found.queries.within_s < START + 16 * DAY)
    late = np.flatnonzero(found.queries.at > START + 16 * DAY)
    model = fit(name, type(found)(found.queries.pick(early), found.revoked[early]))
    assert scores(model.chance(found.queries.pick(late)), found.revoked[late]).skill > 0.1


def test_the_trees_are_monotonic_in_horizon_and_maximum() -> None:
    pytest.importorskip("sklearn")
    markets = auction()
    model = fit_trees(examples(markets), rounds=40)
    zeros, at = np.zeros(20, dtype=np.int64), np.full(20, START + 9 * DAY)
    longer = Queries.about(markets, zeros, at, np.full(20, 0.05), np.linspace(300, 6 * HOUR, 20))
    assert (np.diff(model.chance(longer)) >= 0).all()


def test_examples_of_one_class_are_refused() -> None:
    pytest.importorskip("sklearn")
    quiet = market([0, DAY, 2 * DAY, 3 * DAY], [0.1, 0.1, 0.1, 0.1])
    with pytest.raises(DataError, match=r"none of .* examples were revoked: there is nothing to learn"):
        fit("trees", examples(quiet, 200))


# -- saving ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["trees", "logistic", "frequency", "rises", "prior"])
def test_a_saved_model_predicts_the_same(name: str) -> None:
    if name == "trees":
        pytest.importorskip("sklearn")
    kept = saved(name)
    queries = examples(auction(), 200, seed=5).queries
    again = decoded(encoded(kept))
    assert again == kept
    assert (again.model.chance(queries) == kept.model.chance(queries)).all()


def test_saved_trees_are_read_and_evaluated_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    content = encoded(saved("trees"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert 0 <= decoded(content).model.chance(examples(auction(), 50).queries).max() <= 1
    with pytest.raises(MissingExtra, match="'sklearn'"):
        fit("trees", examples(auction(), 50))


@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"{}", b"[1", b'{"format": "other"}'])
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"model\.json is not a saved revocation model"):
        decoded(content, "model.json")


def test_trees_that_point_outside_are_refused() -> None:
    pytest.importorskip("sklearn")
    content = encoded(saved("trees"))
    with pytest.raises(DataError, match="not a saved revocation model"):
        decoded(content.replace(b'"names":["price",', b'"names":['))
    with pytest.raises(DataError, match="not a saved revocation model"):
        decoded(content.replace(b'"shape":[', b'"shape":[1'))


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match="model 'tree' is unknown") as refusal:
        fit("tree", examples(auction(), 50))
    assert "trees" in refusal.value.hint


# -- scores ------------------------------------------------------------------------------------------------------------
def test_scores_by_hand() -> None:
    found = scores(np.array([0.9, 0.6, 0.2, 0.1]), np.array([True, False, True, False]))
    assert found.brier == pytest.approx((0.01 + 0.36 + 0.64 + 0.01) / 4)
    assert found.brier_of_base_rate == 0.25
    assert found.skill == pytest.approx(1 - found.brier / 0.25)
    assert found.auc == 0.75
    assert found.accuracy == 0.5
    assert found.f1 == 0.5


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40))
def test_scores_stay_within_their_bounds(answers: list[tuple[float, bool]]) -> None:
    found = scores(np.array([chance for chance, _ in answers]), np.array([gone for _, gone in answers]))
    assert 0 <= found.brier <= 1
    assert 0 <= found.calibration_error <= 1
    assert math.isnan(found.auc) or 0 <= found.auc <= 1
