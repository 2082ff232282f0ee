"""TrimTuner's search keeps to what every policy must: nothing remembered, nothing written, late events survived."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.space.constraints import Constraint
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC

LIMITED = replace(SPEC, recipe="trimtuner", trials=9, max_steps=3, constraints=(Constraint("cost", 0.15),))


class _Recipe(PolicySuite):
    seeds = (0, 1)

    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return recipes.build(spec)


class TestTrimTuner(_Recipe):
    spec = replace(LIMITED, fractions=(0.25, 1.0))


class TestTrimTunerThatEndsTrialsAtTheirLimit(_Recipe):
    """Three steps take six minutes, and a constraint is violated after four."""

    spec = replace(LIMITED, constraints=(Constraint("seconds", 240.0),), options={"parallel": 2})


class TestTrimTunerThatLosesPatience(_Recipe):
    spec = replace(LIMITED, constraints=(), given=({"x": 0.5},), trials=12, options={"patience": 2})


class TestLimitsInARecipeThatKnowsNothingOfThem(_Recipe):
    spec = replace(SPEC, recipe="asha", trials=9, constraints=(Constraint("cost", 0.15), Constraint("loss", 1.0)))
