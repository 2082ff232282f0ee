"""What a pause left: machines released, trials saved, and what the others have to repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from shoestring.kernel.state import RunState
from shoestring.kernel.types import JobId


@dataclass(frozen=True)
class HeldAtPause:
    """What a run held when it was requested to pause."""

    machines: int = 0
    lost_steps: Mapping[JobId, int] | None = None
    """Of each running trial, until then."""

    @classmethod
    def of(cls, state: RunState) -> Self:
        jobs = (state.jobs[segment.job] for segment in state.segments.values())
        return cls(len(state.leases), {job.id: job.lost_steps for job in jobs})


def pause_summary(held: HeldAtPause, state: RunState) -> str:
    """A sentence about a run that is paused."""
    saved = starting_over = losing = steps = 0
    for job_id, before in (held.lost_steps or {}).items():
        job = state.jobs[job_id]
        if job.over:
            continue
        if job.lost_steps > before:
            losing += 1
            steps += job.lost_steps - before
        elif job.checkpoint is None:
            starting_over += 1
        else:
            saved += 1
    parts = [f"{_count(held.machines, 'machine')} released", f"{_count(saved, 'trial')} saved"]
    if losing:
        parts.append(f"{_count(losing, 'trial')} not saved ({_count(steps, 'step')} lost)")
    if starting_over:
        parts.append(f"{_count(starting_over, 'trial')} without a checkpoint (to start over)")
    return f"Stopping: {', '.join(parts)}. Run the same command to resume."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
