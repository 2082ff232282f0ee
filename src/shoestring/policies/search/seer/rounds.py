"""Timed rounds: what every SEER variant shares, whatever its plan and its elimination rule.

The clock of a round is a timer, "stage:2", set when the round begins: for the first one that is the first granted
machine, because nothing can train before. A trial's tag records the round it was last promoted to. A trial that
finishes or fails leaves its slots empty until the round is over; then it is no longer ranked, and the others get them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shoestring.errors import SpecError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.elastic.leaving import leave_after_this_step, leave_at_once
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, next_config
from shoestring.policies.search.seer.bill import BilledPlan, InfeasiblePlan
from shoestring.policies.search.seer.plan import Stage
from shoestring.units import show_duration

STAGE = "stage"
ROUND_WAKERS: frozenset[Waker] = frozenset(
    {e.RunStarted, e.LeaseGranted, e.TimerFired, e.SegmentEnded, e.LeaseEnded, e.UserAsked}
)

Widths = dict[JobId, int]
"""Slots of the promoted trials."""
Verdict = tuple[Widths, Sequence[JobId]]
"""The promoted trials with their slots, and the pruned ones. A trial in neither is paused."""
Judge = Callable[[RunView, int, list[Job]], Verdict]
"""Given the stage that begins, counted from 0, and all remaining trials, best first."""


def run_rounds(
    state: RunView, event: e.Event, plan: Callable[[RunView], BilledPlan], judge: Judge
) -> Iterator[d.Decision]:
    """One turn: start the trials, start the clock, or end the round that is over. A budget or deadline amended to less
    than any plan needs ends the run."""
    if state.phase != "running":
        return
    try:
        stages = plan(state).stages
    except SpecError as error:
        too_short = isinstance(error, InfeasiblePlan) and error.too_short
        yield d.WindDown(reason="deadline_reached" if too_short else "out_of_budget", why=str(error))
        return
    if not state.jobs:
        yield from _open(state, stages, judge)
        return
    match event:
        case e.TimerFired(name=name) if name == _timer(now_in := current_stage(state)) and name not in state.timers:
            yield from _end_round(state, now_in, stages, judge)
        case _ if not state.waiting and not state.count("running"):
            yield d.WindDown(reason="completed", why="all remaining trials have finished or failed")
        case e.LeaseGranted() if not any(name.startswith(f"{STAGE}:") for name in state.timers):
            yield _clock(state, current_stage(state), stages)


def current_stage(state: RunView) -> int:
    """Counted from 0."""
    return max(int(job.tags.get(STAGE) or 0) for job in state.jobs.values())


def standing(state: RunView, job: Job) -> tuple[int, float, int]:
    """A sort key, best first: by the value at the end of the round, then trials without a report, then those whose
    value is NaN."""
    if not job.values:
        return 1, 0.0, job.number
    diverged, value = state.spec.rank(job.values[-1])
    return (2, 0.0, job.number) if diverged else (0, value, job.number)


def _open(state: RunView, stages: Sequence[Stage], judge: Judge) -> Iterator[d.Decision]:
    count = sum(bracket.trials for bracket in stages[0].brackets)
    for number in range(count):
        job = state.next_job()
        config, origin = next_config(state, number, job, RANDOM_SAMPLER)
        yield d.AddJob(job=job, config=config, tags={STAGE: 0}, why=f"trial {number + 1} of {count}, {origin}")
    widths, _ = judge(state, 0, list(state.jobs.values()))
    for job, slots in widths.items():
        yield d.RunJob(
            job=job,
            until_step=state.spec.max_steps,
            slots=slots,
            why=f"stage 1 of {len(stages)}, {_slots(slots)}, for {show_duration(stages[0].stop - stages[0].start)}",
        )


def _end_round(state: RunView, ended: int, stages: Sequence[Stage], judge: Judge) -> Iterator[d.Decision]:
    if ended + 1 >= len(stages):
        yield d.WindDown(reason="completed", why=f"stage {ended + 1} of {len(stages)}, the last, is over")
        return
    racing = [job for job in state.jobs.values() if not job.over]
    racing.sort(key=lambda job: standing(state, job))
    rank = {job.id: place + 1 for place, job in enumerate(racing)}
    widths, out = judge(state, ended + 1, racing)
    for job_id in out:
        why = f"pruned: ranked {rank[job_id]} of {len(racing)} at the end of stage {ended + 1}"
        yield d.DropJob(job=job_id, why=why)
        yield from leave_at_once(state, state.jobs[job_id])
    for job in racing:
        if job.wanted and job.id not in widths:
            why = f"paused: ranked {rank[job.id]} of {len(racing)}, in no bracket of stage {ended + 2}"
            yield d.PauseJob(job=job.id, why=why)
            yield from leave_after_this_step(state, job)
    for job_id, slots in widths.items():
        why = f"promoted to stage {ended + 2} of {len(stages)}, {_slots(slots)}: ranked {rank[job_id]} of {len(racing)}"
        yield d.TagJob(job=job_id, tags={STAGE: ended + 1}, why=why)
        yield d.RunJob(job=job_id, until_step=state.spec.max_steps, slots=slots, why=why)
    if not widths:
        yield d.WindDown(reason="completed", why=f"no trial is left for stage {ended + 2}")
        return
    yield _clock(state, ended + 1, stages)


def _clock(state: RunView, stage: int, stages: Sequence[Stage]) -> d.WakeAt:
    length_s = stages[min(stage, len(stages) - 1)].stop - stages[min(stage, len(stages) - 1)].start
    return d.WakeAt(
        name=_timer(stage),
        at=max(state.now, min(state.now + length_s, state.deadline_at - state.spec.wind_down_s)),
        why=f"stage {stage + 1} of {len(stages)} lasts {show_duration(length_s)}",
    )


def _timer(stage: int) -> str:
    return f"{STAGE}:{stage + 1}"


def _slots(slots: int) -> str:
    return "1 slot" if slots == 1 else f"{slots} slots"
