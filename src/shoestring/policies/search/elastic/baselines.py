"""Elastic grid search, successive halving and Hyperband: timed rounds like SEER's, each with its own plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.models.speed.by_width import SpeedByWidth
from shoestring.policies.search.elastic.plans import grid_plan, halving_plan, hyperband_plan
from shoestring.policies.search.seer.bill import BilledPlan, SeerTerms
from shoestring.policies.search.seer.plan import Bracket
from shoestring.policies.search.seer.policy import promote_best
from shoestring.policies.search.seer.replan import affordable_machines
from shoestring.policies.search.seer.rounds import ROUND_WAKERS, Verdict, Widths, run_rounds
from shoestring.policies.search.seer.terms import Parameters, terms_at_start


@dataclass(frozen=True)
class _Planned:
    parameters: Parameters
    wants: ClassVar[frozenset[Waker]] = ROUND_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        return run_rounds(state, event, self.plan, self.judge)

    def plan(self, state: RunView) -> BilledPlan:
        key = (self, "plan", state.spec.budget_usd, state.spec.deadline_s)
        return state.memo(key, lambda: self.made(terms_at_start(state, self.parameters)))

    def made(self, terms: SeerTerms) -> BilledPlan:
        raise NotImplementedError

    def judge(self, state: RunView, stage: int, racing: list[Job]) -> Verdict:
        return promote_best(state, self.plan(state).stages[stage].brackets, racing)


@dataclass(frozen=True)
class ElasticGrid(_Planned):
    """Explore for half of the time, then train the best on many slots.

    Differs from the paper: trials are sampled at random. The paper's spaces are lists of values, of which a sample is a
    grid point; ours need not be.
    """

    def made(self, terms: SeerTerms) -> BilledPlan:
        return grid_plan(terms)


@dataclass(frozen=True)
class ElasticHalving(_Planned):
    """Successive halving whose promoted trials share the slots of those that were pruned."""

    def made(self, terms: SeerTerms) -> BilledPlan:
        return halving_plan(terms)

    def judge(self, state: RunView, stage: int, racing: list[Job]) -> Verdict:
        """As many as can be paid by then: bills are often lower than planned, and finalists finish early."""
        if stage == 0:
            return super().judge(state, stage, racing)
        plan, terms = self.plan(state), terms_at_start(state, self.parameters)
        width = plan.stages[stage].brackets[0].slots
        to_the_end_s = max(map(_seconds_to_the_end(state, width), racing), default=0.0)
        plan = _ending_by(plan, plan.stages[stage].start + to_the_end_s)
        slots = affordable_machines(state, terms, plan, stage) * terms.slots
        width = min(width, slots)
        return promote_best(state, [Bracket(trials=slots // width, slots=width)], racing)


def _seconds_to_the_end(state: RunView, width: int) -> Callable[[Job], float]:
    speeds, slots = SpeedByWidth.of(state), width * state.spec.slots
    return lambda job: (state.spec.max_steps - job.step) * speeds.step_s(job.id, slots)


def _ending_by(billed: BilledPlan, stop: float) -> BilledPlan:
    """The plan with a last stage that ends by `stop`: a trial that reaches max_steps releases its machines, and the
    money reserved for the rest of the stage pays for others now."""
    last = billed.stages[-1]
    shorter = replace(last, stop=min(last.stop, max(last.start, stop)))
    return replace(billed, plan=replace(billed.plan, stages=(*billed.stages[:-1], shorter)))


@dataclass(frozen=True)
class ElasticHyperband(_Planned):
    """Hyperband with all brackets at once. A trial competes within its bracket only, given by its number."""

    def made(self, terms: SeerTerms) -> BilledPlan:
        return hyperband_plan(terms)

    def judge(self, state: RunView, stage: int, racing: list[Job]) -> Verdict:
        stages = self.plan(state).stages
        widths: Widths = {}
        first = 0
        places = stages[stage].brackets
        for begun, now in zip(stages[0].brackets, places, strict=True):
            mine = [job for job in racing if first <= job.number < first + begun.trials]
            widths |= {job.id: now.slots * state.spec.slots for job in mine[: now.trials]}
            first += begun.trials
        return widths, [job.id for job in racing if job.id not in widths]
