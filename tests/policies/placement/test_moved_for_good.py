"""A trial that is moved so that its machine can be released is not started on that machine again."""

from __future__ import annotations

from msgspec.structs import replace

from shoestring.policies.placement.renting.packing import packing_for
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story

SLOTS = {SPOT: 2, ON_DEMAND_OFFER: 4}


def test_a_machine_with_work_on_it_comes_before_an_empty_one_with_as_much_room() -> None:
    run = Story(spec=replace(SPEC, listings=tuple(replace(x, slots=SLOTS[x.offer]) for x in SPEC.listings)))
    run.begin()
    run.rent("l0", offer=SPOT)
    run.rent("l1", offer=ON_DEMAND_OFFER)
    for number in range(2):
        run.add(f"j{number}", until_step=9)
        run.start(f"s{number}", f"j{number}", "l1", running_since=run.state.now)
    run.add("j2", until_step=9)
    packing = packing_for(run.view, run.state.jobs["j2"])
    assert packing is not None
    assert packing.leases == ("l1",)
