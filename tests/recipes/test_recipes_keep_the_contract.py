"""Every policy we ship, in every recipe, keeps to what PolicySuite demands of third parties."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC

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


class TestAStudyThatRunsOutOfMoney(_Recipe):
    spec = replace(SPEC, recipe="asha", budget_usd=0.3)


class TestAStudyThatRunsOutOfTime(_Recipe):
    spec = replace(SPEC, recipe="random", deadline_s=1500.0)


@pytest.mark.parametrize("broken", ["writes", "remembers", "asks the clock"])
def test_the_suite_catches_a_policy_that(broken: str) -> None:
    from tests.recipes import misbehaving

    class Suite(_Recipe):
        spec = replace(SPEC, recipe="random")

        def policies(self, spec: RunSpec) -> Sequence[Policy]:
            return [misbehaving.POLICIES[broken](), *recipes.build(spec)]

    suite = Suite()
    check = {
        "writes": suite.test_the_state_is_only_read,
        "remembers": suite.test_nothing_is_remembered_outside_the_state,
        "asks the clock": suite.test_no_policy_asks_a_clock_or_the_outside,
    }[broken]
    with pytest.raises((AssertionError, Exception), match="wrote to the state|decided otherwise|imports time"):
        check()
