"""Every policy we ship, in every recipe, satisfies the PolicySuite that third parties must pass."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.errors import PolicyError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC
from tests.recipes.misbehaving import AsksTheClock, Remembers, Writes

GIVEN = tuple({"x": number / 10} for number in range(7))


class _Recipe(PolicySuite):
    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return recipes.build(spec)


class TestAsha(_Recipe):
    spec = replace(SPEC, recipe="asha", trials=12)


class TestHyperband(_Recipe):
    spec = replace(SPEC, recipe="hyperband", trials=12, options={"checkpointing": "on_notice"})


class TestSuccessiveHalving(_Recipe):
    spec = replace(SPEC, recipe="successive_halving", direction="maximize", options={"eta": 2})


class TestRandom(_Recipe):
    spec = replace(SPEC, recipe="random", given=GIVEN[:2], options={"placement": "on_demand"})


class TestGrid(_Recipe):
    spec = replace(SPEC, recipe="grid", options={"every_s": 60})


class TestGiven(_Recipe):
    spec = replace(SPEC, recipe="given", given=GIVEN)


class TestTpe(_Recipe):
    spec = replace(SPEC, recipe="tpe", trials=12, options={"startup": 3})


class TestAshaWithTpe(_Recipe):
    spec = replace(SPEC, recipe="asha_tpe", trials=16, direction="maximize", options={"startup": 3})


class TestBohb(_Recipe):
    spec = replace(SPEC, recipe="bohb", trials=16, given=GIVEN[:2], options={"startup": 3})


class TestSpotTune(_Recipe):
    spec = replace(SPEC, recipe="spottune", trials=12, options={"theta": 0.5, "mcnt": 2})


class TestAStudyThatRunsOutOfMoney(_Recipe):
    spec = replace(SPEC, recipe="asha", budget_usd=0.3)


class TestAStudyThatRunsOutOfTime(_Recipe):
    spec = replace(SPEC, recipe="random", deadline_s=1500.0)


class _Misbehaving(_Recipe):
    spec = replace(SPEC, recipe="random")

    def __init__(self, broken: type) -> None:
        self.broken = broken

    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return [self.broken(), *recipes.build(spec)]


def test_the_suite_catches_a_policy_that_writes() -> None:
    with pytest.raises(PolicyError, match="Writes wrote to the state on LeaseGranted"):
        _Misbehaving(Writes).test_policies_do_not_write_to_the_state()


def test_the_suite_catches_a_policy_that_remembers() -> None:
    with pytest.raises(AssertionError, match="different decisions after a restart"):
        _Misbehaving(Remembers).test_policies_keep_nothing_outside_the_state()


def test_the_suite_catches_a_policy_that_asks_the_clock() -> None:
    with pytest.raises(AssertionError, match="AsksTheClock imports time"):
        _Misbehaving(AsksTheClock).test_no_policy_imports_a_clock_or_io()
