"""RevPred and Tributary: Eq. 3 in both forms, and networks that predict the same with and without torch."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy.special import expit

from shoestring.errors import DataError
from shoestring.models.revocation.arrays import Array
from shoestring.models.revocation.examples import Examples, draw
from shoestring.models.revocation.lstm import (
    MarketNet,
    RevPred,
    Tributary,
    inputs,
    revpred_output,
    tributary_output,
    unweighted,
)
from shoestring.models.revocation.lstm_training import Effort, fit_revpred, fit_tributary
from shoestring.models.revocation.saved import SavedModel, decoded, encoded
from shoestring.models.revocation.scores import scores
from tests.models.revocation_markets import DAY, START, auction, market, question

SMALL = Effort(width=4, epochs=2)


def few(count: int = 200) -> Examples:
    return draw(auction(), START, START + 9 * DAY, count, np.random.default_rng(0), only=[0, 1])


def random_net(*, apart: bool, width: int = 3) -> MarketNet:
    rng = np.random.default_rng(0)
    shapes = {}
    for layer in range(3):
        shapes[f"lstm.weight_ih_l{layer}"] = (4 * width, (6 if apart else 7) if layer == 0 else width)
        shapes[f"lstm.weight_hh_l{layer}"] = (4 * width, width)
        shapes[f"lstm.bias_l{layer}"] = (4 * width,)
        if apart:
            shapes[f"dense.{layer}.weight"] = (width, 7 if layer == 0 else width)
            shapes[f"dense.{layer}.bias"] = (width,)
    shapes["last.weight"], shapes["last.bias"] = (1, 2 * width if apart else width), (1,)
    weights = {name: Array.of(rng.normal(size=shape), "<f4") for name, shape in shapes.items()}
    return MarketNet(mean=(0.0,) * 7, scale=(1.0,) * 7, revoked_share=0.2, weights=weights)


def test_a_net_with_class_weights_that_learned_the_base_rate_predicts_the_base_rate() -> None:
    # Weighted so, both classes count the same, and a net that can tell nothing apart says one half.
    half = np.array([0.5])
    assert unweighted(half, 0.03, "corrected")[0] == pytest.approx(0.03)
    assert unweighted(half, 0.03, "printed")[0] == pytest.approx(0.97)


def test_as_printed_equation_3_is_worse() -> None:
    rng = np.random.default_rng(0)
    truth = rng.beta(0.3, 3.0, 20_000)
    revoked = rng.random(20_000) < truth
    share = revoked.mean()
    weighted = truth * (1 - share) / (truth * (1 - share) + (1 - truth) * share)
    corrected, printed = (scores(unweighted(weighted, share, form), revoked) for form in ("corrected", "printed"))
    np.testing.assert_allclose(unweighted(weighted, share, "corrected"), truth, atol=1e-5)
    assert corrected.skill > 0 > printed.skill


def test_the_past_of_revpred_does_not_see_the_maximum_and_that_of_tributary_does() -> None:
    queries = question(market([0, 3600], [0.2, 0.3]), 7200, 0.5)
    told = inputs(random_net(apart=True), queries)
    changed = told.copy()
    changed[:, :-1, 6] += 1.0
    assert told.shape == (1, 60, 7)
    assert revpred_output(random_net(apart=True), told) == revpred_output(random_net(apart=True), changed)
    assert tributary_output(random_net(apart=False), told) != tributary_output(random_net(apart=False), changed)


def test_a_market_without_a_network_is_refused() -> None:
    with pytest.raises(DataError, match="was not trained on m3"):
        RevPred(nets={}).chance(question(market([0], [0.2]), 3600, 0.5))


def test_an_hour_is_stretched_to_other_times() -> None:
    net = random_net(apart=False)
    markets = market([0, 3600], [0.2, 0.3])
    model = Tributary(nets={str(markets.offers[0]): net})
    one, two = (model.chance(question(markets, 7200, 0.5, hours * 3600.0))[0] for hours in (1, 2))
    assert 1 - two == pytest.approx((1 - one) ** 2)


@pytest.mark.heavy
@pytest.mark.parametrize("apart", [True, False], ids=["revpred", "tributary"])
def test_without_torch_a_network_predicts_the_same(apart: bool) -> None:
    torch = pytest.importorskip("torch")
    from shoestring.models.revocation.lstm_training import _exported, _network, logits

    torch.manual_seed(0)
    trained = _network(torch, 5, apart=apart)
    net = msgspec.structs.replace(random_net(apart=apart), weights=_exported(trained))
    told = np.random.default_rng(1).normal(size=(20, 60, 7))
    theirs = expit(logits(torch, trained, torch.tensor(told, dtype=torch.float32)).detach().numpy())
    ours = (revpred_output if apart else tributary_output)(net, told)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.heavy
@pytest.mark.parametrize("fit", [fit_revpred, fit_tributary])
def test_the_same_seed_trains_the_same_network_and_it_can_be_saved(fit: object) -> None:
    pytest.importorskip("torch")
    found = few()
    model = fit(found, seed=3, effort=SMALL)
    assert model == fit(found, seed=3, effort=SMALL)
    kept = SavedModel(name="net", trained_from=0.0, trained_until=1.0, examples=200, revoked_share=0.1, model=model)
    queries = few(30).queries
    assert (decoded(encoded(kept)).model.chance(queries) == model.chance(queries)).all()


@pytest.mark.heavy
def test_scrambling_later_prices_changes_no_prediction_of_a_network() -> None:
    pytest.importorskip("torch")
    from tests.models.test_revocation_no_peeking import ask, futures

    here, there = futures()
    found = draw(here, START, START + 8 * DAY, 400, np.random.default_rng(0))
    model = fit_revpred(found, effort=SMALL)
    assert (ask(model, here) == ask(model, there)).all()
