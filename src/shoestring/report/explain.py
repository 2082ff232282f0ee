"""`why`: the journal as sentences, one per event or decision, for one trial or for the whole run.

The journal is replayed on the way, so each line can name what an id stood for at that moment. Timers, prepayments and
single reports are left out: they are in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.fold.evolve import evolve
from shoestring.kernel.history import Entry
from shoestring.kernel.records import Lease
from shoestring.kernel.state import RunState
from shoestring.kernel.types import JobId, LeaseId, SegmentId
from shoestring.report.waiting import why_it_waits
from shoestring.units import show_duration, show_number, show_text, show_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationLine:
    """One event or decision, as a sentence."""

    since_start_s: float
    text: str
    jobs: tuple[JobId, ...] = ()
    """The trials it is about."""

    def __str__(self) -> str:
        minutes, seconds = divmod(int(self.since_start_s), 60)
        return f"{minutes // 60:d}:{minutes % 60:02d}:{seconds:02d}  {show_text(self.text)}"


class Explanation(tuple[ExplanationLine, ...]):
    """Lines that print as text. Times count from the start of the run, as its deadline does."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


Sentences = Iterator[tuple[str, tuple[JobId, ...]]]
"""Each with the trials it is about."""


def tell(entries: Iterable[Entry]) -> Iterator[ExplanationLine]:
    """The whole run, sentence by sentence."""
    state = RunState()
    for entry in entries:
        event = entry.event
        state.seq, state.now = entry.seq, max(state.now, event.at)
        sentences = list(_describe(_EVENTS, state, event))  # before the fold: it forgets what has ended
        evolve(state, event)
        for decision in entry.decisions:
            sentences += _describe(_DECISIONS, state, decision)
            evolve(state, decision)
        for text, jobs in sentences:
            yield ExplanationLine(since_start_s=max(0.0, event.at - state.started_at), text=text, jobs=jobs)


def why(entries: Iterable[Entry], job: JobId, end: RunState) -> Explanation:
    """Every event and decision about one trial, and why it waits, if it does. `end`: the state after all entries."""
    lines = [line for line in tell(entries) if job in line.jobs]
    waits = why_it_waits(end, end.jobs[job])
    if waits:
        since_start_s = max(0.0, end.now - end.started_at)
        lines.append(ExplanationLine(since_start_s=since_start_s, text=waits, jobs=(job,)))
    return Explanation(lines)


def _describe(table: dict[type, Callable[[RunState, Any], Sentences]], state: RunState, fact: object) -> Sentences:
    describe = table.get(type(fact))
    return iter(()) if describe is None else describe(state, fact)


# -- events ------------------------------------------------------------------------------------------------------------
def _run_started(state: RunState, event: e.RunStarted) -> Sentences:  # noqa: ARG001
    spec = event.spec
    what = f"{spec.trials} jobs" if spec.until_exit else f"{spec.trials} trials of {spec.max_steps} steps"
    yield (
        f"{spec.kind} {spec.name} started: {what}, recipe {spec.recipe}, "
        f"{show_usd(spec.budget_usd)}, {show_duration(spec.deadline_s)}",
        (),
    )


def _granted(state: RunState, event: e.LeaseGranted) -> Sentences:
    lease = state.leases.get(event.lease)
    if lease is not None:
        yield f"{lease.offer} is up, {show_duration(event.at - lease.requested_at)} after the request", ()


def _denied(state: RunState, event: e.LeaseDenied) -> Sentences:
    lease = state.leases.get(event.lease)
    if lease is not None:
        yield f"{lease.offer} denied: {event.detail or event.reason.replace('_', ' ')}", ()


def _noticed(state: RunState, event: e.RevocationNoticed) -> Sentences:
    lease = state.leases.get(event.lease)
    if lease is not None:
        notice = show_duration(max(0.0, event.gone_at - event.at))
        yield f"notice: {lease.offer} will be preempted in {notice}", _jobs_on(state, lease)


def _ended(state: RunState, event: e.LeaseEnded) -> Sentences:
    lease = state.leases.get(event.lease)
    if lease is None:
        return
    refund = f", {show_usd(event.refunded_usd)} refunded" if event.refunded_usd else ""
    how = {"released": "released", "revoked": "preempted", "expired": "expired", "lost": "lost"}[event.cause]
    yield f"{lease.offer} {how}: {show_usd(event.charged_usd)}{refund}", _jobs_on(state, lease)


def _snapshot(state: RunState, event: e.SnapshotReported) -> Sentences:
    metric = state.the_spec.metric or ""
    value = f": {metric} {show_number(event.metrics[metric])}" if metric in event.metrics else ""
    yield f"reported a result for data fraction {event.fraction:.3g}{value}", (event.job,)


def _saved(state: RunState, event: e.CheckpointSaved) -> Sentences:
    lease = _lease_of(state, event.segment)
    if lease is not None and lease.gone_at is not None:
        spare = show_duration(max(0.0, lease.gone_at - event.at))
        yield f"saved on notice at step {event.step}, {spare} to spare", (event.job,)
    else:
        yield f"saved at step {event.step}", (event.job,)


def _checkpoint_lost(state: RunState, event: e.CheckpointLost) -> Sentences:  # noqa: ARG001
    yield f"its checkpoint at step {event.ref.step} cannot be used: {event.detail}", (event.job,)


def _segment_ended(state: RunState, event: e.SegmentEnded) -> Sentences:
    segment = state.segments.get(event.segment)
    if segment is None:
        return
    job = state.jobs[segment.job]
    unsaved = max(0, event.step - job.saved_step)
    lost = f"; back to step {job.saved_step}, {unsaved} steps lost" if unsaved else ""
    reason = f": {event.detail}" if event.detail else ""
    text = {
        "reached": f"reached step {event.step}",
        "completed": f"its code finished at step {event.step}",
        "halted": f"halted at step {event.step}{lost}",
        "lost": f"lost its machine at step {event.step}{lost}",
        "failed": f"failed at step {event.step}{reason}{lost}",
        "overran": f"killed as hung at step {event.step}{reason}{lost}",
    }[event.cause]
    yield text, (job.id,)


def _user_request(state: RunState, event: e.UserAsked) -> Sentences:
    if event.wish != "amend":
        yield f"you requested: {event.wish}", ()
        return
    spec = state.the_spec
    budget = spec.budget_usd if event.budget_usd is None else event.budget_usd
    deadline_s = spec.deadline_s if event.deadline_s is None else event.deadline_s
    yield f"you set the budget to {show_usd(budget)} and the deadline to {show_duration(deadline_s)}", ()


def _broke(state: RunState, event: e.PolicyBroke) -> Sentences:  # noqa: ARG001
    yield f"a policy broke, the run is parked: {event.detail}", ()


# -- decisions ---------------------------------------------------------------------------------------------------------
def _about_job(verb: str) -> Callable[[RunState, Any], Sentences]:
    def sentences(state: RunState, decision: Any) -> Sentences:  # noqa: ARG001
        yield f"{verb}: {decision.why}", (decision.job,)

    return sentences


def _about_segment(verb: str) -> Callable[[RunState, Any], Sentences]:
    def sentences(state: RunState, decision: Any) -> Sentences:
        segment = state.segments.get(decision.segment)
        if segment is not None:
            yield f"{verb}: {decision.why}", (segment.job,)

    return sentences


def _about_run(verb: str) -> Callable[[RunState, Any], Sentences]:
    def sentences(state: RunState, decision: Any) -> Sentences:  # noqa: ARG001
        yield f"{verb}: {decision.why}", ()

    return sentences


def _run_job(state: RunState, decision: d.RunJob) -> Sentences:
    before = state.jobs[decision.job].until_step
    verb = "promoted to" if 0 < before < decision.until_step else "scheduled until"
    slots = f" on {decision.slots} slots" if decision.slots > 1 else ""
    how = f"scheduled{slots}" if state.the_spec.until_exit else f"{verb} step {decision.until_step}{slots}"
    yield f"{how}: {decision.why}", (decision.job,)


def _start(state: RunState, decision: d.StartSegment) -> Sentences:  # noqa: ARG001
    verb = "started" if decision.resume_from is None else "resumed"
    fraction = f", data fraction {decision.fraction:.3g}" if decision.fraction < 1 else ""
    yield f"{verb} {decision.why}{fraction}", (decision.job,)


def _plan_saves(state: RunState, decision: d.PlanSaves) -> Sentences:
    segment = state.segments.get(decision.segment)
    if segment is not None and segment.saved_at is not None:  # the plan that comes with every start is left out
        yield f"saves from now on: {decision.why}", (segment.job,)


def _request(state: RunState, decision: d.RequestLease) -> Sentences:
    until = show_duration(decision.end_by - state.now)
    yield (
        f"requested {decision.offer} for {until}, at most {show_usd(decision.reserve_usd)}: {decision.why}",
        (),
    )


def _release(state: RunState, decision: d.ReleaseLease) -> Sentences:
    lease = state.leases.get(decision.lease)
    yield f"released {decision.lease if lease is None else lease.offer}: {decision.why}", ()


def _refused(state: RunState, decision: d.Refused) -> Sentences:
    proposed = decision.wish
    match proposed:
        case d.RequestLease():
            yield f"guard refused to rent {proposed.offer}: {decision.why}", ()
        case d.ExtendLease():
            lease = state.leases.get(proposed.lease)
            if lease is not None:
                yield f"guard refused to extend {lease.offer}: {decision.why}", _jobs_on(state, lease)
        case d.StartSegment():
            yield f"guard refused to start it: {decision.why}", (proposed.job,)


def _conclude(state: RunState, decision: d.Conclude) -> Sentences:
    best = "without a result" if decision.best is None else f"best is trial {state.jobs[decision.best].number}"
    yield f"over, {best}: {decision.why}", () if decision.best is None else (decision.best,)


def _jobs_on(state: RunState, lease: Lease) -> tuple[JobId, ...]:
    return tuple(state.segments[segment].job for segment in lease.segments)


def _lease_of(state: RunState, segment_id: SegmentId) -> Lease | None:
    segment = state.segments.get(segment_id)
    leases: tuple[LeaseId, ...] = () if segment is None else segment.leases
    return state.leases.get(leases[0]) if leases else None


_EVENTS: dict[type, Callable[[RunState, Any], Sentences]] = {
    e.RunStarted: _run_started,
    e.LeaseGranted: _granted,
    e.LeaseDenied: _denied,
    e.RevocationNoticed: _noticed,
    e.LeaseEnded: _ended,
    e.SnapshotReported: _snapshot,
    e.CheckpointSaved: _saved,
    e.CheckpointLost: _checkpoint_lost,
    e.SegmentEnded: _segment_ended,
    e.UserAsked: _user_request,
    e.PolicyBroke: _broke,
}

_DECISIONS: dict[type, Callable[[RunState, Any], Sentences]] = {
    d.AddJob: _about_job("added"),
    d.RunJob: _run_job,
    d.PauseJob: _about_job("paused"),
    d.DropJob: _about_job("pruned"),
    d.JudgeJob: _about_job("judged"),
    d.StartSegment: _start,
    d.PlanSaves: _plan_saves,
    d.HaltSegment: _about_segment("save and halt requested"),
    d.SaveCheckpoint: _about_segment("save requested"),
    d.RequestLease: _request,
    d.ReleaseLease: _release,
    d.WindDown: _about_run("winding down"),
    d.WindDownV1: _about_run("winding down"),
    d.Refused: _refused,
    d.Conclude: _conclude,
}
