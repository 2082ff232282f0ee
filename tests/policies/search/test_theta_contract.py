"""Theta keeps to what every policy must: nothing remembered, nothing written, late and repeated events survived."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC


class _Theta(PolicySuite):
    seeds = (0, 1)

    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return recipes.build(spec)


class TestTheta(_Theta):
    spec = replace(SPEC, recipe="theta", trials=8)


class TestThetaOnCurvesThatComeToRest(_Theta):
    """Every curve counts as a plateau, so that trials stop on their way and wait for the others."""

    spec = replace(SPEC, recipe="theta", trials=6, max_steps=30, options={"plateau": 0.5, "every_s": 300, "mcnt": 2})


class TestThetaThatTrainsAllToTheEnd(_Theta):
    spec = replace(SPEC, recipe="theta", trials=5, options={"theta": 1.0})


class TestThetaThatStopsTheHopeless(_Theta):
    spec = replace(
        SPEC,
        recipe="theta_adaptive",
        trials=8,
        max_steps=20,
        direction="maximize",
        options={"mcnt": 1, "curve": "slaq"},
    )
