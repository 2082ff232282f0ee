"""Joint posteriors: their covariances are those of others' Gaussian processes, and a fantasy is what an update would
bring."""

from __future__ import annotations

import numpy as np
import pytest

import shoestring as ss
from shoestring.optimizer.candidates import listed
from shoestring.optimizer.joint_model import deviation_after, influence
from shoestring.optimizer.outcome_model import ERROR, OutcomeData, OutcomePosterior, Trend
from shoestring.optimizer.transforms import Transform
from tests.optimizer.posteriors import after, believed

TARGETS = np.array([3, 50, 51, 200, 410])
RUNS = [(7, 1 / 32), (50, 1 / 4), (410, 1.0)]


def on_all_of_the_data(trend: Trend = ERROR) -> tuple[OutcomePosterior, np.ndarray, np.ndarray]:
    """A posterior from full-data runs, their encoded configurations, and their transformed values."""
    space = {"a": ss.uniform(0.0, 1.0), "b": ss.uniform(0.0, 1.0)}
    rng = np.random.default_rng(1)
    configs = [{"a": float(a), "b": float(b)} for a, b in rng.random((14, 2))]
    candidates = listed(space, configs)
    assert candidates is not None
    levels = np.sin(5.0 * candidates.x[:9, 0]) + candidates.x[:9, 1] + 0.05 * rng.standard_normal(9)
    measured = OutcomeData(np.arange(9), np.zeros(9), levels, np.zeros(9, dtype=bool))
    return OutcomePosterior(measured, Transform(False), trend, candidates, 1 / 16, None), candidates.x, levels


def test_the_joint_posterior_is_that_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    posterior, x, levels = on_all_of_the_data()
    shape = posterior.shape
    kernel = ConstantKernel(shape.a**2) * Matern(shape.lengths, nu=2.5) + ConstantKernel(shape.c02)
    unit = levels.std()
    theirs = GaussianProcessRegressor(kernel, alpha=shape.noise2 + 1e-10, optimizer=None)
    theirs.fit(x[:9], (levels - levels.mean()) / unit)
    mean, covariance = theirs.predict(x, return_cov=True)
    everywhere = np.arange(len(x))
    ours = posterior.at(1.0)
    assert ours.mean == pytest.approx(levels.mean() + unit * mean, abs=1e-6)
    assert posterior.covariance(everywhere, 1.0, everywhere, 1.0) == pytest.approx(unit**2 * covariance, abs=1e-6)


@pytest.mark.heavy
def test_a_fantasy_is_that_of_botorch() -> None:
    pytest.importorskip("botorch")
    import torch
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import ConstantKernel, MaternKernel, ScaleKernel
    from gpytorch.means import ZeroMean

    posterior, x, levels = on_all_of_the_data()
    shape, unit = posterior.shape, levels.std()
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)) + ConstantKernel()
    values = torch.tensor((levels - levels.mean()) / unit)[:, None]
    noise = torch.full_like(values, shape.noise2)
    theirs = SingleTaskGP(
        torch.tensor(x[:9]), values, noise, covar_module=kernel, mean_module=ZeroMean(), outcome_transform=None
    ).double()
    theirs.covar_module.kernels[0].outputscale = shape.a**2
    theirs.covar_module.kernels[0].base_kernel.lengthscale = torch.tensor(shape.lengths)
    theirs.covar_module.kernels[1].constant = torch.tensor(shape.c02)
    everywhere, new = torch.tensor(x), torch.tensor(x[11:12])
    before = theirs.posterior(everywhere)
    there = theirs.posterior(new)
    deviation = (there.variance + shape.noise2).sqrt()
    told = theirs.condition_on_observations(new, there.mean + deviation, noise=noise[:1])
    later = told.posterior(everywhere)
    moved = influence(posterior, np.array([11]), 1.0, np.arange(len(x)))
    shift = (later.mean - before.mean)[:, 0].detach().numpy()
    assert moved[0] == pytest.approx(unit * shift, abs=1e-4)
    left = deviation_after(posterior, moved, np.arange(len(x)))[0] ** 2
    assert left == pytest.approx(unit**2 * later.variance[:, 0].detach().numpy(), abs=1e-4)


@pytest.mark.parametrize("outcome", ["objective", "limit"])
def test_influence_is_the_effect_of_an_update(outcome: str) -> None:
    posteriors = believed()
    posterior = posteriors.objective if outcome == "objective" else posteriors.modelled_constraints()[0].posterior
    assert isinstance(posterior, OutcomePosterior)
    now = posterior.at(1.0, TARGETS)
    for row, fraction in RUNS:
        moved = influence(posterior, np.array([row]), fraction, TARGETS)
        later = after(posterior, row, fraction, 1.7).at(1.0, TARGETS)
        assert later.mean == pytest.approx(now.mean + 1.7 * moved[0], abs=1e-6)
        assert deviation_after(posterior, moved, TARGETS)[0] == pytest.approx(later.deviation, abs=1e-5)


def test_draws_have_the_mean_and_the_covariance_of_the_posterior() -> None:
    posterior = believed().objective
    values = posterior.draws(TARGETS, 100_000, [1]).values
    covariance = posterior.covariance(TARGETS, 1.0, TARGETS, 1.0)
    unit = np.sqrt(covariance.max())
    assert values.mean(axis=0) == pytest.approx(posterior.at(1.0, TARGETS).mean, abs=0.02 * unit)
    assert np.cov(values.T) == pytest.approx(covariance, abs=0.03 * unit**2)


def test_conditioned_draws_are_draws_of_the_posterior_after_the_run() -> None:
    posterior = believed().objective
    draws = posterior.draws(TARGETS, 100_000, [1])
    for row, fraction in RUNS:
        for surprise in (-1.2, 0.0, 2.0):
            (values,) = draws.conditioned(np.array([row]), fraction, [surprise])
            values = values + draws.values.mean()  # which was subtracted
            later = after(posterior, row, fraction, surprise)
            covariance = later.covariance(TARGETS, 1.0, TARGETS, 1.0)
            unit = np.sqrt(covariance.max())
            assert values[0].mean(axis=0) == pytest.approx(later.at(1.0, TARGETS).mean, abs=0.02 * unit)
            assert np.cov(values[0].T) == pytest.approx(covariance, abs=0.03 * unit**2)


def test_equal_seeds_give_equal_draws_and_others_do_not() -> None:
    posterior = believed().objective
    first, again, other = (posterior.draws(TARGETS, 10, seed).values for seed in ([1, 2], [1, 2], [1, 3]))
    assert (first == again).all()
    assert (first != other).any()


def test_nearly_identical_candidates_can_be_drawn() -> None:
    space = {"a": ss.uniform(0.0, 1.0)}
    candidates = listed(space, [{"a": 0.5 + 1e-9 * place} for place in range(20)])
    assert candidates is not None
    measured = OutcomeData(np.arange(3), np.zeros(3), np.array([0.1, 0.2, 0.3]), np.zeros(3, dtype=bool))
    posterior = OutcomePosterior(measured, Transform(False), ERROR, candidates, 1 / 16, None)
    assert np.isfinite(posterior.draws(np.arange(20), 50, [0]).values).all()
