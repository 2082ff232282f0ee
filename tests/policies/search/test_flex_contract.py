"""Flex keeps to what every policy must: nothing remembered, nothing written, late and repeated events survived."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing
from shoestring.space.space import Choice, Float, Int, Space
from shoestring.testing.policy_suite import PolicySuite
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT

WIDE = tuple(
    Listing(offer=offer, vcpus=8, memory_gb=32, slots=4, on_demand_usd_per_hour=1.0)
    for offer in (SPOT, ON_DEMAND_OFFER)
)


class _Flex(PolicySuite):
    seeds = (0,)

    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        return recipes.build(spec)


class TestFlex(_Flex):
    spec = replace(SPEC, recipe="flex", trials=25, deadline_s=2400.0, listings=WIDE, options={"startup": 4})


class TestFlexOnMachinesOfOneSlot(_Flex):
    spec = replace(SPEC, recipe="flex", trials=16, deadline_s=2400.0, options={"startup": 4})


class TestFlexThatRunsOutOfMoney(_Flex):
    spec = replace(SPEC, recipe="flex", trials=25, listings=WIDE, budget_usd=0.5, direction="maximize")


class TestFlexWithFewTrialsAndMuchTime(_Flex):
    """All trials are begun long before half of the time is over, and then trained to their end."""

    spec = replace(
        SPEC, recipe="flex", trials=6, given=({"x": 0.1}, {"x": 0.2}), listings=WIDE, options={"placement": "on_demand"}
    )


class TestFlexOnASpaceWithConditions(_Flex):
    spec = replace(
        SPEC,
        recipe="flex",
        trials=16,
        deadline_s=2400.0,
        listings=WIDE,
        slots=2,
        options={"startup": 4},
        space=Space(
            params={
                "kind": Choice(options=("a", "b", "c")),
                "layers": Int(low=1, high=5),
                "units": Int(low=8, high=512, log=True),
                "x": Float(low=0.0, high=1.0, when={"kind": ("a", "b")}),
            }
        ),
    )
