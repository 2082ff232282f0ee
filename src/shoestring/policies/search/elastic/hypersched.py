"""HyperSched: ASHA on the cluster that the budget pays until the deadline; it shifts from exploration to exploitation.

New trials start only while one could still reach the leader's step. From half of the time on, a growing share of the
slots goes to the leaders: fewer leaders each time, on more slots each, given to those that gain most from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.policies.search.elastic.hypersched_forecast import TrialForecast, outlook, widths_by_gain
from shoestring.policies.search.elastic.leaving import leave_after_this_step, wanted_slots
from shoestring.policies.search.halving.rungs import Ladder, LadderProgress, asynchronous_quota, rung_steps
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER, SEARCH_WAKERS, next_config, planned
from shoestring.policies.search.seer.bill import SeerTerms
from shoestring.policies.search.seer.terms import Parameters, provision_s, terms_at_start


def affordable_slots(state: RunView, parameters: Parameters) -> int:
    """Slots on all machines the budget pays until the deadline, as far as whole workers can use them."""
    key = (affordable_slots, parameters, state.spec.budget_usd, state.spec.deadline_s)
    terms = state.memo(key, lambda: terms_at_start(state, parameters))
    return steady_machines(terms) * terms.slots * state.spec.slots


def steady_machines(terms: SeerTerms) -> int:
    """At least one (the guard ends it when the budget is spent), at most `max_machines`."""
    usd = terms.lease_usd(max(0.0, terms.deadline_s - terms.provision_s))
    if usd <= 0:
        return terms.most_machines
    return max(1, min(terms.most_machines, int(terms.budget_usd / usd * (1 + 1e-9))))


LEADERS = "leaders:"
SHARES = (0.25, 0.5, 0.75, 1.0)
"""The leaders' share of the slots after each reallocation."""
FIRST_TURN, LAST_TURN = 0.5, 0.9
"""When reallocations begin and end, as shares of the time; those between are evenly spaced."""


@dataclass(frozen=True)
class HyperSched:
    parameters: Parameters
    eta: int = 4
    grace_steps: int = 1
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS | {e.TimerFired}

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        if isinstance(event, e.RunStarted | e.UserAsked):
            yield from self._next_turn(state)
        climb = state.memo(self, lambda: LadderProgress(lambda: [self._ladder(state)]))
        climb.catch_up(state)
        yield from climb.ladders[0].prune(state)
        climb.decided(state)
        if isinstance(event, e.TimerFired) and event.name.startswith(LEADERS):
            yield from self._lead(state, int(event.name.removeprefix(LEADERS)))
            if not self._is_done(state):
                yield from self._next_turn(state)
            climb.catch_up(state)  # leaders leave the ladder
        yield from self._fill(state, climb.ladders[0])
        climb.decided(state)
        if self._is_done(state):
            yield from _no_more_turns(state)

    def _ladder(self, state: RunView) -> Ladder:
        spec = state.spec
        steps = rung_steps(min(self.grace_steps, spec.max_steps), self.eta, spec.max_steps)
        return Ladder(steps, self.eta, planned(spec), asynchronous_quota, minimize=spec.direction == "minimize")

    # -- ASHA ------------------------------------------------------------------------------------------------------
    def _fill(self, state: RunView, ladder: Ladder) -> Iterator[d.Decision]:
        """Promote what may be promoted, then start new trials while exploration pays."""
        spec, width = state.spec, self._width(state)
        cluster = affordable_slots(state, self.parameters)
        while cluster - wanted_slots(state) >= width:
            decided = len(state.decided)
            yield from ladder.promote(state)
            if len(state.decided) > decided:
                continue
            if len(state.jobs) >= planned(spec) or not self._explores(state):
                return
            job, number = state.next_job(), len(state.jobs)
            config, origin = next_config(state, number, job, RANDOM_SAMPLER)
            yield d.AddJob(job=job, config=config, tags={"rung": 0}, why=f"trial {number + 1}, {origin}")
            step = ladder.first_step
            yield d.RunJob(job=job, until_step=step, slots=width, why=f"first rung: step {step} of {spec.max_steps}")

    def _explores(self, state: RunView) -> bool:
        """Could a trial that starts now still reach the leader's step?"""
        if state.best is None:
            return True
        trained_s = sum(pace.seconds for pace in state.paces(state.jobs[state.best]).values())
        return trained_s < _left_s(state)

    def _is_done(self, state: RunView) -> bool:
        """Is there no trial left that could run, now or when the leaders' next turn comes?"""
        over = sum(map(state.count, ("finished", "pruned", "failed")))
        return 0 < over == len(state.jobs) and (over >= planned(state.spec) or not self._explores(state))

    # -- leaders ---------------------------------------------------------------------------------------------------
    def _lead(self, state: RunView, turn: int) -> Iterator[d.Decision]:
        """The best by predicted final value get their share of the slots; the best of the others keep the rest."""
        width, cluster, max_steps = self._width(state), affordable_slots(state, self.parameters), state.spec.max_steps
        left_s = _left_s(state)
        known = [known for job in state.jobs.values() if not job.over and (known := outlook(state, job)) is not None]
        if not known:
            return
        share = max(width, int(cluster * SHARES[min(turn, len(SHARES)) - 1]))
        known.sort(key=lambda one: (one.forecast(width, left_s, max_steps), one.job.number))
        leaders = known[: max(1, share // (width * 2**turn))]
        widest = min(self.parameters.p_max * state.spec.slots, share)
        widths = widths_by_gain(leaders, share, narrowest=width, widest=widest, left_s=left_s, max_steps=max_steps)
        chosen = {leader.job.id for leader in leaders}
        yield from self._make_room(state, [one.job for one in known if one.job.id not in chosen], cluster - share)
        for place, (leader, slots) in enumerate(zip(leaders, widths, strict=True)):
            yield from _give(state, leader, max(slots, leader.job.slots), place)

    def _make_room(self, state: RunView, others: list[Job], room: int) -> Iterator[d.Decision]:
        for job in others:
            if not job.wanted:
                continue
            if job.slots <= room:
                room -= job.slots
                continue
            yield d.PauseJob(job=job.id, why="its slots are given to the leaders")
            yield from leave_after_this_step(state, job)

    # -- clock -----------------------------------------------------------------------------------------------------
    def _next_turn(self, state: RunView) -> Iterator[d.Decision]:
        spec = state.spec
        start = state.started_at + provision_s(spec, self.parameters)
        span = state.deadline_at - spec.wind_down_s - start
        for turn in range(1, len(SHARES) + 1):
            at = start + span * (FIRST_TURN + (LAST_TURN - FIRST_TURN) * (turn - 1) / (len(SHARES) - 1))
            if at > state.now:
                why = f"then the leaders get {SHARES[turn - 1]:.0%} of the slots"
                yield d.WakeAt(name=f"{LEADERS}{turn}", at=at, why=why)
                return

    def _width(self, state: RunView) -> int:
        return self.parameters.p_min * state.spec.slots


def _no_more_turns(state: RunView) -> Iterator[d.Decision]:
    """A turn that is still to come would keep the run open: it comes now, finds no leaders, and is the last."""
    for name in [name for name, at in state.timers.items() if name.startswith(LEADERS) and at > state.now]:
        yield d.WakeAt(name=name, at=state.now, why="every trial is over: no leader is left to get more slots")


def _give(state: RunView, leader: TrialForecast, slots: int, place: int) -> Iterator[d.Decision]:
    job, max_steps = leader.job, state.spec.max_steps
    if job.wanted and job.slots == slots and job.until_step == max_steps:
        return
    yield d.RunJob(
        job=job.id,
        until_step=max_steps,
        slots=slots,
        why=f"leader {place + 1}, {state.spec.metric} {leader.job.values[-1]:.4g}: {slots} slots to max_steps",
    )


def _left_s(state: RunView) -> float:
    return max(0.0, state.deadline_at - state.spec.wind_down_s - state.now)
