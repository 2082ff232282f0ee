"""Why nothing runs, as a sentence: for the live line, `status` and `why`. Pure: a function of the state."""

from __future__ import annotations

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Job
from shoestring.kernel.state import RunState
from shoestring.kernel.view import RunView
from shoestring.policies.housekeeping.closing import DEADLINE
from shoestring.policies.placement.renting.assign import RETRY
from shoestring.policies.placement.renting.breaker import renting_stopped, why_stopped
from shoestring.policies.placement.renting.facts import setbacks_of
from shoestring.units import show_duration


def why_nothing_runs(state: RunState) -> str:
    """Empty while user code runs, and once the run is over. Times count from the start of the run."""
    if state.concluded:
        return ""
    if state.phase != "running":
        return f"ending: {state.ending}"
    if any(segment.running_since is not None for segment in state.segments.values()):
        return ""
    if state.segments:
        return f"{_count(len(state.segments), 'trial')} starting"
    return _for_a_machine(state) if state.waiting else _for_the_search(state)


def why_it_waits(state: RunState, job: Job) -> str:
    """Why a trial that is to run does not; empty if it does, or is not to run."""
    if job.status != "waiting":
        return ""
    if state.phase != "running":
        return f"not running: the run is {'over' if state.concluded else 'ending'}: {state.ending}"
    if state.segments:
        return f"{_count(len(state.segments), 'other trial')} on the machines; {_for_a_machine(state)}"
    return _for_a_machine(state)


def _for_a_machine(state: RunState) -> str:
    if state.pending:
        leases = [state.leases[lease] for lease in state.pending]
        which = str(leases[0].offer) if len({lease.offer for lease in leases}) == 1 else "several offers"
        since = show_duration(min(lease.requested_at for lease in leases) - state.started_at)
        earlier = setbacks_of(RunView(state), state.setbacks) if state.setbacks else ""
        return (
            f"waiting for {_count(len(leases), 'machine')} ({which}, requested at {since})"
            f"{f', after {earlier}' if earlier else ''}"
        )
    if RETRY in state.timers:
        why = state.timer_whys.get(RETRY, "").removesuffix(": try again")
        return f"waiting for a machine: {why}; next request at {_since_start(state, state.timers[RETRY])}"
    view = RunView(state)
    if renting_stopped(view):
        return f"waiting for a machine: {why_stopped(view)}"
    if state.leases:
        held = _count(len(state.leases), "machine")
        if all(not lease.usable for lease in state.leases.values()):
            return f"waiting for a machine: {held} held, about to end"
        most = view.spec.max_machines
        no_more = f", and max_machines={most} allows no more" if view.in_hand >= most else ""
        return f"waiting for a machine: {held} held, without room for it{no_more}"
    if state.refused is not None and isinstance(state.refused.wish, d.RequestLease):
        return f"waiting for a machine: {state.refused.why}"
    return "waiting for a machine"


def _for_the_search(state: RunState) -> str:
    if state.background_tasks:
        return f"waiting for the search, which computes: {', '.join(state.background_tasks)}"
    timers = {name: at for name, at in state.timers.items() if name not in (DEADLINE, RETRY)}
    if timers:
        name = min(timers, key=lambda name: timers[name])
        return f"no trial is due; at {_since_start(state, timers[name])}: {state.timer_whys.get(name, name)}"
    return "no trial is due" if state.leases else ""


def _since_start(state: RunState, at: float) -> str:
    return show_duration(max(0.0, at - state.started_at))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
