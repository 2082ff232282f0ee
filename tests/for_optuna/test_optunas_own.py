"""Optuna's own tests of samplers.

All of those for single-objective samplers are run as they are. Those for several objectives do not apply: the sampler
refuses such studies, which is what Optuna's tests of single-objective samplers ask for.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

suites = pytest.importorskip(
    "optuna.testing.pytest_samplers", reason="Optuna ships its sampler tests from release 4.8 on"
)
from shoestring.for_optuna import TrimTunerSampler  # noqa: E402 - the extra may be absent


class _Ours:
    @pytest.fixture
    def sampler(self) -> Callable[[], TrimTunerSampler]:
        return lambda: TrimTunerSampler(seed=1)


class TestBasic(_Ours, suites.BasicSamplerTestCase):
    pass


class TestRelative(_Ours, suites.RelativeSamplerTestCase):
    pass


class TestSingleOnly(_Ours, suites.SingleOnlySamplerTestCase):
    pass
