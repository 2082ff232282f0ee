"""The Gaussian process: exact gradients, textbook predictions, and conditioning that equals a new fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.optimizer.gp.fit import LogPosterior, most_likely
from shoestring.optimizer.gp.kernel import Frame, KernelParameters, RunPoints, matern, prior
from shoestring.optimizer.gp.process import GP

FRACTIONS = np.array([1 / 60, 0.1, 0.25, 0.5, 1.0])
FRAME = Frame(np.array([0, 1, 2, 2, 2]), trend=0.2, smallest=1 / 60)
"""Two ranges, and a choice of three whose columns share a length-scale."""


def some_points(count: int, rng: np.random.Generator) -> RunPoints:
    return FRAME.points(rng.random((count, 5)), np.log(rng.choice(FRACTIONS, count)))


def some_shape(rng: np.random.Generator, spread: float = 0.5) -> KernelParameters:
    mean, deviation = prior(FRAME.parameters)
    return KernelParameters(mean + spread * deviation * rng.standard_normal(len(mean)))


def written_out(shape: KernelParameters, a: RunPoints, b: RunPoints) -> np.ndarray:
    """The kernel, entry by entry, as in the docstring of its module."""
    own = shape.theta[FRAME.parameters :]
    scale, slope, c, e, kappa, c0 = np.exp(own[0]), own[1], *np.exp(own[2:6])
    k = np.zeros((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            r = np.sqrt((((a.x[i] - b.x[j]) / np.exp(shape.theta[FRAME.parameter])) ** 2).sum())
            near = (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r)
            p, q, least = a.p[i], b.p[j], min(a.p[i], b.p[j])
            k[i, j] = near * scale**2 * ((1 + slope * p) * (1 + slope * q) + c**2 * p * q + e**2 * least)
            k[i, j] += c0**2 + FRAME.trend**2 * a.log_s[i] * b.log_s[j] + kappa**2 * least
    return k


def noise(shape: KernelParameters, at: RunPoints) -> np.ndarray:
    return np.exp(2 * (shape.theta[-2] + shape.theta[-1] * at.p))


@given(seed=st.integers(0, 10_000), count=st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_the_gradient_of_the_log_posterior_is_that_of_finite_differences(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    density = LogPosterior(some_points(count, rng), rng.standard_normal(count), FRAME)
    theta = some_shape(rng).theta
    _, slope = density(theta)
    for number, step in enumerate(1e-5 * np.eye(len(theta))):
        measured = (density(theta + step)[0] - density(theta - step)[0]) / 2e-5
        assert slope[number] == pytest.approx(measured, rel=1e-4, abs=1e-5), number


def test_the_density_is_a_normal_likelihood_times_the_priors() -> None:
    from scipy.stats import multivariate_normal, norm

    rng = np.random.default_rng(0)
    points, values = some_points(9, rng), rng.standard_normal(9)
    shapes = [some_shape(rng), some_shape(rng)]
    mean, deviation = prior(FRAME.parameters)

    def expected(shape: KernelParameters) -> float:
        covariance = written_out(shape, points, points) + np.diag(noise(shape, points))
        priors = norm.logpdf(shape.theta, mean, deviation).sum()
        return float(multivariate_normal(np.zeros(9), covariance).logpdf(values) + priors)

    density = LogPosterior(points, values, FRAME)
    differences = density(shapes[0].theta)[0] - density(shapes[1].theta)[0]
    assert differences == pytest.approx(expected(shapes[0]) - expected(shapes[1]))


def test_predictions_are_those_of_scikit_learn_at_full_size() -> None:
    """At full size the kernel is a scaled Matern 5/2, a constant and noise, which scikit-learn has as well."""
    process = pytest.importorskip("sklearn.gaussian_process")
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels")
    rng = np.random.default_rng(1)
    x, new, values = rng.random((20, 5)), rng.random((30, 5)), rng.standard_normal(20)
    shape = some_shape(rng)
    kernel = (
        kernels.ConstantKernel(shape.a**2) * kernels.Matern(shape.lengths[FRAME.parameter], nu=2.5)
        + kernels.ConstantKernel(shape.c02)
        + kernels.WhiteKernel(shape.noise2)
    )
    oracle = process.GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-10).fit(x, values)
    mean, deviation = oracle.predict(new, return_std=True)
    ours = GP.of(FRAME.points(x, np.zeros(20)), values, shape, FRAME)
    ahead = ours.slice(ours.near(new), 1.0)
    assert ahead.mean == pytest.approx(mean, abs=1e-6)
    assert np.sqrt(ahead.variance + ahead.noise) == pytest.approx(deviation, abs=1e-6)


def test_the_joint_posterior_of_two_fractions_is_that_of_a_textbook() -> None:
    rng = np.random.default_rng(2)
    seen, values, shape = some_points(15, rng), rng.standard_normal(15), some_shape(rng)
    x = rng.random((7, 5))
    small, full = FRAME.points(x, np.full(7, np.log(0.1))), FRAME.points(x, np.zeros(7))
    inverse = np.linalg.inv(written_out(shape, seen, seen) + np.diag(noise(shape, seen)))

    def posterior(a: RunPoints, b: RunPoints) -> np.ndarray:
        across = written_out(shape, a, seen) @ inverse @ written_out(shape, seen, b)
        return np.diag(written_out(shape, a, b) - across)

    process = GP.of(seen, values, shape, FRAME)
    near = process.near(x)
    low, high = process.slice(near, 0.1), process.slice(near, 1.0)
    assert low.mean == pytest.approx(written_out(shape, small, seen) @ inverse @ values, abs=1e-7)
    assert process.mean(near, 0.1) == pytest.approx(low.mean)
    assert low.variance == pytest.approx(posterior(small, small), abs=1e-7)
    assert high.variance == pytest.approx(posterior(full, full), abs=1e-7)
    assert process.covariance(low, high) == pytest.approx(posterior(small, full), abs=1e-7)
    assert low.noise == pytest.approx(noise(shape, small)[0])


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_conditioning_on_a_value_equals_a_process_fitted_with_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen, values, shape = some_points(10, rng), rng.standard_normal(10), some_shape(rng)
    x, new = rng.random((6, 5)), rng.random(5)
    process = GP.of(seen, values, shape, FRAME)
    log_s = np.log(np.array([0.25]))
    more = FRAME.points(np.vstack([seen.x, new]), np.append(seen.log_s, log_s))
    again = GP.of(more, np.append(values, 0.7), shape, FRAME)
    told = process.condition_on(new, 0.25, 0.7)
    for fraction in (0.25, 1.0):
        one, other = told.slice(told.near(x), fraction), again.slice(again.near(x), fraction)
        assert one.mean == pytest.approx(other.mean, abs=1e-6)
        assert one.variance == pytest.approx(other.variance, abs=1e-6)


def test_a_value_with_extra_variance_counts_for_less_in_the_fit_too() -> None:
    rng = np.random.default_rng(7)
    seen, values, shape = some_points(10, rng), rng.standard_normal(10), some_shape(rng)
    x, new, log_s = rng.random((6, 5)), rng.random(5), np.log(np.array([0.25]))
    told = GP.of(seen, values, shape, FRAME).condition_on(new, 0.25, 0.7, variance=0.3)
    both = FRAME.points(np.vstack([seen.x, new]), np.append(seen.log_s, log_s))
    vague = RunPoints(both.x, both.p, both.log_s, np.append(np.zeros(10), 0.3))
    again = GP.of(vague, np.append(values, 0.7), shape, FRAME)
    assert told.slice(told.near(x), 1.0).mean == pytest.approx(again.slice(again.near(x), 1.0).mean, abs=1e-6)
    theta = shape.theta
    density = LogPosterior(vague, np.append(values, 0.7), FRAME)
    for number, step in enumerate(1e-5 * np.eye(len(theta))):
        measured = (density(theta + step)[0] - density(theta - step)[0]) / 2e-5
        assert density(theta)[1][number] == pytest.approx(measured, rel=1e-4, abs=1e-5), number


def test_conditioning_on_its_own_prediction_keeps_means_and_reduces_variance() -> None:
    rng = np.random.default_rng(4)
    process = GP.of(some_points(10, rng), rng.standard_normal(10), KernelParameters(FRAME.prior()[0]), FRAME)
    x = rng.random((6, 5))
    believing = process.condition_on(x[0], 1.0)
    before, after = process.slice(process.near(x), 1.0), believing.slice(believing.near(x), 1.0)
    assert after.mean == pytest.approx(before.mean)
    assert (after.variance <= before.variance + 1e-12).all()
    assert after.variance[0] < 0.5 * before.variance[0]


def test_the_fit_finds_which_parameter_matters_and_starts_from_the_last_one() -> None:
    rng = np.random.default_rng(5)
    points = FRAME.points(rng.random((40, 5)), np.zeros(40))
    values = np.sin(6 * points.x[:, 0])
    values = (values - values.mean()) / values.std()
    first = most_likely(points, values, FRAME, None)
    assert first.lengths[0] < 0.5 * min(first.lengths[1:])
    density = LogPosterior(points, values, FRAME)
    later = most_likely(points, values, FRAME, first)
    assert density(later.theta)[0] >= density(first.theta)[0] > density(KernelParameters(FRAME.prior()[0]).theta)[0]


def test_a_matern_of_columns_that_share_a_length_scale_is_that_of_their_distance() -> None:
    rng = np.random.default_rng(6)
    a, b, lengths = rng.random((4, 5)), rng.random((3, 5)), np.array([0.5, 1.0, 2.0])
    r = np.sqrt((((a[:, None] - b) / lengths[FRAME.parameter]) ** 2).sum(axis=2))
    expected = (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r)
    assert matern(a, b, lengths, FRAME.parameter) == pytest.approx(expected)
