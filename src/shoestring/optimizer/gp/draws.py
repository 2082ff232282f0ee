"""Joint draws of a Gaussian posterior, and the same draws conditioned on one more run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from shoestring.errors import DataError
from shoestring.optimizer.candidates import Numbers, Rows
from shoestring.optimizer.joint_model import JointPosterior, influence
from shoestring.optimizer.observations import FULL

_ROUNDING = (1e-9, 1e-7, 1e-5)
"""Jitter, as shares of the mean variance, until rounding no longer makes the covariance indefinite."""


class GaussianDraws:
    """f_after = f + (z - v) d (Matheron's rule): draws of full-size values, updated instead of drawn again.

    f is a draw of the targets, and v what a run would measure in that draw, in deviations more than expected. If it
    measures z instead, f_after is a draw of the posterior after it; d is the influence of the run. So an update costs
    one product for each value, and no covariance is ever factored again.
    """

    def __init__(self, posterior: JointPosterior, targets: Rows, count: int, seed: Sequence[int]) -> None:
        rng = np.random.default_rng(seed)
        self._posterior, self._targets = posterior, targets
        self._factor = _factored(posterior.covariance(targets, FULL, targets, FULL))
        self._normals = rng.standard_normal((len(targets), count))
        self._besides = rng.standard_normal(count)
        """The part of a measurement that is independent of the targets: noise, and variance of its own."""
        self.values: Numbers = posterior.at(FULL, targets).mean + (self._factor @ self._normals).T

    def conditioned(self, rows: Rows, fraction: float, surprises: Iterable[float]) -> Iterator[NDArray[np.float32]]:
        """In single precision, which is enough to find the least and takes half of the time; less their common mean,
        so that no digits are lost to it."""
        moved = influence(self._posterior, rows, fraction, self._targets)
        parts = dtrtrs(self._factor, moved.T, lower=1)[0]
        besides = np.sqrt(np.maximum(1.0 - (parts * parts).sum(axis=0), 0.0))
        would = parts.T @ self._normals + np.multiply.outer(besides, self._besides)
        now, away = (self.values - self.values.mean()).astype(np.float32), moved.astype(np.float32)
        # In memory all draws of one target follow each other: their least are found several at a time.
        by_target = np.empty((now.shape[1], len(rows), len(now)), np.float32)
        for surprise in surprises:
            np.multiply((surprise - would).astype(np.float32), away.T[:, :, None], out=by_target)
            by_target += now.T[:, None, :]
            yield by_target.transpose(1, 2, 0)


def _factored(covariance: Numbers) -> Numbers:
    """The lower Cholesky factor. Candidates may be equal but for rounding."""
    scale = float(np.mean(np.diag(covariance)))
    for share in _ROUNDING:
        factor, failed = dpotrf(covariance + scale * share * np.eye(len(covariance)), lower=1, clean=1)
        if not failed:
            return np.asarray(factor)
    raise DataError(
        "the candidates cannot be distinguished from each other", hint="leave out those that are nearly the same"
    )
