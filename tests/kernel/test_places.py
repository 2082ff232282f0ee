"""How many trials can run at once: one count, for search and placement."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.space.parameters import machine_type
from shoestring.space.space import Space
from shoestring.testing.story import SPEC, story


def places(worker: int, *machines: int, most: int = 4, **fields) -> int:
    listings = tuple(
        replace(SPEC.listings[0], offer=replace(SPEC.listings[0].offer, machine=f"m{number}"), slots=slots)
        for number, slots in enumerate(machines)
    )
    return story(spec=replace(SPEC, slots=worker, listings=listings, max_machines=most, **fields)).view.places


@pytest.mark.parametrize(
    ("worker", "machines", "expected"),
    [
        (1, (1,), 4),
        (2, (4,), 8),
        (2, (3,), 4),  # the third slot of each machine is of no use: not 4 * 3 // 2
        (3, (5, 2), 4),
        (1, (1, 4), 16),  # all of them may be of the largest type
        (5, (4,), 1),  # none fits: placement reports it
    ],
)
def test_only_whole_workers_on_one_machine_count(worker: int, machines: tuple[int, ...], expected: int) -> None:
    assert places(worker, *machines) == expected


def test_a_trial_that_names_its_machine_has_it_to_itself() -> None:
    named = Space(params={"machine": machine_type("m0", "m1")})
    assert named.roles
    assert places(1, 4, 4, space=named) == 4
