"""The status of a run, in words that a script can rely on.

`completed`, `cancelled`, `out_of_budget`, `deadline_reached` and `failed` are ends. A `paused` run resumes with the
same command, and so does one that `failed` because a policy broke. Else `failed` means that every trial failed, or that
renting stopped, because machines were given back unused again and again; the sentence beside it says which.
"""

from __future__ import annotations

from typing import Literal

from shoestring.kernel.state import RunState
from shoestring.kernel.types import EndReason

RunStatus = Literal["running", "paused", EndReason]


def run_status(state: RunState, *, driven: bool) -> RunStatus:
    """`driven`: is a controller alive? A run whose controller is gone while it was running is paused."""
    if state.concluded:
        return state.end_reason or "completed"
    if state.active:
        return "running" if driven else "paused"
    return "failed" if state.phase == "parking" else "paused"
