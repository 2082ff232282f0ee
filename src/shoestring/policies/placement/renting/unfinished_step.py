"""May a trial be moved now? A halted one ends the step that it is at, saves, and stops; what is unsaved when the grace
is over is lost.

Where steps take much longer than a prepaid slice, a move at any moment would lose work, or leave the other machine idle
for hours; and moves at every look would lose all work. So such a trial is moved only near the end of a step, and only
once it has made a step where it is.
"""

from __future__ import annotations

from shoestring.kernel.records import Segment
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import learned_speeds

SOON_SLICES = 4.0
"""A step that ends within so many slices is waited for, though another machine is paid for meanwhile."""
GRACE_STEPS = 3.0
"""A step may take longer than those before: a halt waits for as long as so many."""


def step_ends_soon(state: RunView, segment: Segment) -> bool:
    """As far as is known."""
    if segment.running_since is None:
        return True
    so_far_s = state.now - max(segment.running_since, segment.step_at)
    step_s = _step_s(state, segment)
    left_s = step_s - so_far_s if segment.pace.steps else max(step_s, so_far_s)
    return left_s <= SOON_SLICES * state.spec.slice_s


def moving_grace_s(state: RunView, segment: Segment) -> float:
    """For the current step to end: a slice, or more where steps take longer than that."""
    slice_s, step_s = state.spec.slice_s, _step_s(state, segment)
    return slice_s if step_s <= slice_s else GRACE_STEPS * step_s


def _step_s(state: RunView, segment: Segment) -> float:
    """By the steps that it has made here, else as the other trials'; 0 if no step has been timed at all."""
    pace = segment.pace
    if pace.steps:
        return pace.seconds / pace.steps
    speeds = learned_speeds(state)
    if not (speeds.trials or speeds.estimated):
        return 0.0
    listing = state.listings[state.leases[segment.leases[0]].offer]
    return speeds.step_time(segment.job, listing, segment.slots).expected_s
