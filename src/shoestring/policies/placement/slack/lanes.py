"""Where trials queue: in which order they start, and on which machines.

Each place does its share of the queue, one trial after the other. So a machine is worth keeping only if all of that
share would be done in time on it, not just the next trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from shoestring.kernel import decisions as d
from shoestring.kernel.records import Job, Lease, Segment
from shoestring.kernel.types import Listing
from shoestring.policies.placement.renting.assign import start_on
from shoestring.policies.placement.renting.packing import is_gang, packing_for
from shoestring.policies.placement.slack.per_trial import SlackContext, TrialSlack, has_plenty, slack_of, work_at_most_s
from shoestring.policies.placement.slack.queue import to_do
from shoestring.policies.placement.slack.spot_market import spot_market


def most_urgent(context: SlackContext) -> Job:
    """Of the trials that start next, the one with the least slack: each has its own deadline to meet, and that of all
    that queues behind it. One that gets an on-demand machine without need moves back to spot soon."""
    state = context.state
    placed = [job for job in context.queued if job in state.waiting]
    first = [state.jobs[job] for job in placed or islice(state.waiting, state.spec.max_machines)]
    slacks = [(job, slack_of(context, job)) for job in first]
    return min(slacks, key=lambda pair: math.inf if pair[1] is None else pair[1].now.slack_s)[0]


def start_longest_first(context: SlackContext) -> Iterator[d.Decision]:
    """While an uneven end of the queue could miss the deadline, trials with little left start last: they fill the gaps
    that longer ones leave."""
    state = context.state
    if not state.with_free_slots or not _is_tight(context):
        return
    for job_id in sorted(state.waiting, key=lambda job_id: -to_do(state, state.jobs[job_id])):
        packing = packing_for(state, state.jobs[job_id])
        if packing is not None:
            yield start_on(state, state.jobs[job_id], packing)
        if not state.with_free_slots:
            return


def _is_tight(context: SlackContext) -> bool:
    """Is there a place with less slack than a trial takes? By so much do places finish apart. Not where not all can be
    in time: trials that have begun come first then, or their work would be lost."""
    state = context.state
    if _queue_has_plenty(context) or not context.queued:
        return False
    if any((job := state.jobs[job_id]).offer is not None or is_gang(state, job) for job_id in state.waiting):
        return False
    fullest = max(context.queued, key=lambda job: to_do(state, state.jobs[job]) + context.queued[job].steps)
    trial_slack = slack_of(context, state.jobs[fullest])
    if trial_slack is None or not trial_slack.whole_queue:
        return False
    return trial_slack.now.slack_s < state.spec.max_steps * trial_slack.seconds_per_step


def _queue_has_plenty(context: SlackContext) -> bool:
    """Nothing waits, or all would be in time on the slowest machine known: answered without a look at each place."""
    state = context.state
    if not state.waiting:
        return True
    longest = max((state.jobs[job] for job in islice(state.waiting, state.places)), key=lambda job: to_do(state, job))
    work_s = work_at_most_s(context, longest)
    return work_s is None or has_plenty(context, work_s, 0.0)


def release_too_slow(context: SlackContext) -> Iterator[d.Decision]:
    """Idle machines on which the trials that queue would not be done in time, where a faster one can be had."""
    state = context.state
    if not state.idle or _queue_has_plenty(context) or not context.queued:
        return
    job = most_urgent(context)
    trial_slack = slack_of(context, job)
    if job.offer is not None or trial_slack is None:
        return
    slow = [lease for lease in map(state.leases.__getitem__, state.idle) if too_slow(context, job, trial_slack, lease)]
    if slow and (trial_slack.on_demand or spot_market(context, job, trial_slack).quotes):
        why = f"released: the trials that queue need a faster machine; {trial_slack}"
        yield from (d.ReleaseLease(lease=lease.id, why=why) for lease in slow)


def leave_too_slow(context: SlackContext, lease: Lease) -> Iterator[d.Decision]:
    """All trials on this machine leave it, if it would be too late for those that queue once they had finished here.
    There must still be time to move."""
    state, here = context.state, context.state.segments_on(lease.id)
    if not context.queued or not lease.usable or not all(_is_settled(context, segment) for segment in here):
        return
    longest = max((state.jobs[segment.job] for segment in here), key=lambda job: to_do(state, job))
    trial_slack = slack_of(context, longest)
    if trial_slack is None or not too_slow(context, longest, trial_slack, lease):
        return
    slack_s, switching = trial_slack.now.slack_s, trial_slack.switching
    longer_s = (_slower(context, longest, trial_slack, lease) - 1.0) * trial_slack.own_s
    if slack_s >= switching.setup_s + switching.save_s and slack_s - longer_s < switching.line_s:
        why = f"makes room for a faster machine, which the trials that queue need: {trial_slack}"
        yield from (d.HaltSegment(segment=segment.id, grace_s=state.spec.slice_s, why=why) for segment in here)


def _is_settled(context: SlackContext, segment: Segment) -> bool:
    """On one machine only, and not about to stop."""
    stops = segment.halting or segment.id in context.state.draining or not context.state.jobs[segment.job].wanted
    return len(segment.leases) == 1 and not stops


def too_slow(context: SlackContext, job: Job, trial_slack: TrialSlack, lease: Lease) -> bool:
    """Would this trial and all behind it take too long on this machine?"""
    slower = _slower(context, job, trial_slack, lease)
    return slower > 1.0 + 1e-9 and slower * trial_slack.now.work_left_s > trial_slack.now.time_left_s


def _slower(context: SlackContext, job: Job, trial_slack: TrialSlack, lease: Lease) -> float:
    """How many times longer its steps take there than on its on-demand fallback. 1 where nothing queues behind it:
    `guarantee` looks after single trials."""
    if not trial_slack.behind.starts:
        return 1.0
    listing = context.state.listings[lease.offer]
    return context.speeds.seconds_per_step(trial_slack.known, listing, job.slots) / trial_slack.seconds_per_step


def leaves_for_queue(context: SlackContext, job: Job, lease: Lease) -> bool:
    """Where no more machines may be rented, and slack is short: is it better to leave a spot machine, for the sake of
    the trials behind, than to stay until it is preempted? Not if a gang is behind: it takes none of the machines that
    are left one by one, and a trial that left one would be the next to start there."""
    if any(context.state.jobs[waits].slots > context.state.largest_slots for waits in context.state.waiting):
        return False
    trial_slack = slack_of(context, job)
    if trial_slack is None or not trial_slack.behind.starts or not trial_slack.whole_queue:
        return False
    in_time = trial_slack.now.slack_s >= trial_slack.switching.setup_s
    return in_time and not notice_suffices(context.state.listings[lease.offer], trial_slack)


def notice_suffices(listing: Listing, trial_slack: TrialSlack) -> bool:
    """Can a trial save after a notice? Then being preempted costs the queue no more time than moving would, for a
    machine on notice no longer counts against `max_machines`, and is replaced while it is still up."""
    return listing.notice_s >= trial_slack.switching.save_s
