"""Why a run has no best trial: what became of its trials, in one sentence."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.policies.search.constraints.judge import ENDED
from shoestring.space.constraints import COST, SECONDS
from shoestring.units import show_duration

Fate = Literal["ended", "failed", "diverged", "other metrics", "under way", "silent"]


def why_no_best(state: RunState) -> str:
    """For people, without a full stop. Trials that were ended at a limit or have no value are counted by their fate."""
    spec, jobs = state.the_spec, list(state.jobs.values())
    fates: dict[Fate, list[Job]] = defaultdict(list)
    for job in jobs:
        if math.isnan(job.best) or ENDED in job.tags:
            fates[_fate(job)].append(job)
    parts = [_head(spec, jobs), *(_told(spec, fate, some, len(jobs)) for fate, some in fates.items())]
    if state.ending and state.end_reason != "completed":
        parts.append(state.ending)
    return "; ".join(parts)


def _head(spec: RunSpec, jobs: Sequence[Job]) -> str:
    one = "job" if spec.kind == "bag" else "trial"
    value = "a value" if spec.metric is None else f"a value of {spec.metric}"
    if not jobs:
        return f"no {one} was started"
    if any(job.feasible is False for job in jobs):
        return f"no {one} satisfies every constraint"
    if any(job.fraction < 1.0 and not math.isnan(job.best) for job in jobs):
        return f"no {one} has reported {value} on all of the data"
    return f"no {one} has reported {value}"


def _fate(job: Job) -> Fate:
    if ENDED in job.tags:
        return "ended"
    if job.status == "failed":
        return "failed"
    if len(job.values):
        return "diverged"
    if job.status == "finished":
        return "other metrics"
    return "under way" if job.status == "running" else "silent"


def _told(spec: RunSpec, fate: Fate, some: Sequence[Job], of: int) -> str:
    count = f"{len(some)} of {of} {'jobs' if spec.kind == 'bag' else 'trials'}"
    match fate:
        case "ended":
            limits = [str(one) for one in spec.constraints if one.at_most and one.metric in (COST, SECONDS)]
            longest = show_duration(max(job.seconds or 0.0 for job in some))
            return (
                f"{count} were ended because of {' or '.join(limits)}, the longest after {longest} of training "
                "(raise the limit if that is too soon)"
            )
        case "failed":
            last = next((f", the last with: {job.detail}" for job in reversed(some) if job.detail), "")
            return f"{count} failed{last}"
        case "diverged":
            return f"{count} reported NaN only"
        case "other metrics":
            names = ", ".join(sorted({name for job in some for name in job.latest}))
            return f"{count} ended without a report of {spec.metric or 'a value'}" + (
                f", only of {names}" if names else ""
            )
        case "under way":
            return f"{count} are running and have not reported yet"
        case "silent":
            return f"{count} were not run, or not for long enough to report"
