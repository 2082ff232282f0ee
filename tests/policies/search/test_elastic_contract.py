"""The elastic recipes keep to what PolicySuite demands: nothing remembered, nothing written, late news survived."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import SPEC

SMALL = replace(
    SPEC,
    listings=tuple(replace(listing, slots=2) for listing in SPEC.listings),
    budget_usd=1.2,
    deadline_s=2400.0,
    max_machines=5,
    options={"t_min_s": 240},
)


class _Recipe(PolicySuite):
    seeds = (1, 2)

    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return recipes.build(spec)


class TestSeer(_Recipe):
    spec = replace(SMALL, recipe="seer")


class TestSeerAsPrinted(_Recipe):
    spec = replace(SMALL, recipe="seer_as_printed", options={"placement": "on_demand", "t_min_s": 240})


class TestHyperSched(_Recipe):
    spec = replace(SMALL, recipe="hypersched", trials=12)


class TestElasticHyperband(_Recipe):
    spec = replace(SMALL, recipe="elastic_hyperband", direction="maximize")


class TestElasticHalving(_Recipe):
    spec = replace(SMALL, recipe="elastic_successive_halving", options={"checkpointing": "on_notice", "eta": 2})


class TestElasticGrid(_Recipe):
    spec = replace(SMALL, recipe="elastic_grid")
