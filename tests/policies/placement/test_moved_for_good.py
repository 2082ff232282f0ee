"""A trial that is moved so that its machine can be released is not started on that machine again."""

from __future__ import annotations

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Policy
from shoestring.policies.placement.renting.packing import packing_for
from shoestring.policies.placement.renting.release_by_plan import AsPlanned
from shoestring.policies.placement.renting.unfinished_step import moving_grace_s, step_ends_soon
from shoestring.policies.search.seer.renting import ReleaseSpare
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story, story

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


def test_a_machine_that_all_work_is_leaving_comes_last() -> None:
    """Two trials stop in order to move: the first to stop must not start beside the second again."""
    run = Story(spec=replace(SPEC, listings=tuple(replace(x, slots=SLOTS[x.offer]) for x in SPEC.listings)))
    run.begin()
    run.rent("l0", offer=SPOT)
    run.rent("l1", offer=ON_DEMAND_OFFER)
    for number, lease in enumerate(("l0", "l1")):
        run.add(f"j{number}", until_step=9)
        run.start(f"s{number}", f"j{number}", lease, running_since=run.state.now)
    run.add("j2", until_step=9)
    fullest = packing_for(run.view, run.state.jobs["j2"])
    run.order(d.HaltSegment(segment="s0", grace_s=900.0, why="moved"))
    moved = packing_for(run.view, run.state.jobs["j2"])
    assert fullest is not None
    assert moved is not None
    assert (fullest.leases, moved.leases) == (("l0",), ("l1",))


def moving(*policies: Policy) -> Story:
    """A trial stops on l0, on demand, in order to start on the idle l1, spot."""
    run = Story(*policies, spec=SPEC)
    run.begin()
    run.rent("l0", offer=ON_DEMAND_OFFER)
    run.add("j0", until_step=9)
    run.start("s0", "j0", "l0", running_since=run.state.now)
    run.order(d.HaltSegment(segment="s0", grace_s=900.0, why="moved to spot"))
    run.rent("l1", offer=SPOT)
    return run


def test_a_machine_that_a_trial_moves_to_is_not_released_as_spare() -> None:
    """It used to be, and the trial started again where it was, at every look."""
    run = moving(AsPlanned(), ReleaseSpare())
    assert run.tell(e.TimerFired(at=50.0, name="tick")) == []
    assert list(AsPlanned().decide(run.view, e.TimerFired(at=50.0, name="tick"))) == []
    run.rent("l2", offer=SPOT)
    assert [x.lease for x in AsPlanned().decide(run.view, e.TimerFired(at=50.0, name="tick"))] == ["l2"]


LONG_STEPS = replace(SPEC, slice_s=900.0, deadline_s=30 * 86400.0)


def test_a_trial_moves_only_near_the_end_of_a_step_that_takes_much_longer_than_a_slice() -> None:
    run = story(spec=LONG_STEPS, lease="l0", job="j0", running_since=0)
    segment, hour = run.state.segments["s0"], 3600.0
    run.happened(e.TimerFired(at=2 * hour, name="tick"))
    assert not step_ends_soon(run.view, segment)  # no step yet
    run.happened(e.JobReported(at=10 * hour, segment="s0", job="j0", step=1, metrics={"loss": 1.0}))
    assert not step_ends_soon(run.view, segment)
    run.happened(e.TimerFired(at=19.5 * hour, name="tick"))
    assert step_ends_soon(run.view, segment)
    assert moving_grace_s(run.view, segment) == 30 * hour


def test_a_trial_of_short_steps_moves_at_any_time() -> None:
    run = story(spec=LONG_STEPS, lease="l0", job="j0", running_since=0)
    run.happened(e.JobReported(at=60.0, segment="s0", job="j0", step=1, metrics={"loss": 1.0}))
    segment = run.state.segments["s0"]
    assert step_ends_soon(run.view, segment)
    assert moving_grace_s(run.view, segment) == 900.0
