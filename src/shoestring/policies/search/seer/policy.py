"""SEER: sequential elimination with elastic resources. Many trials begin on few slots each; whenever a round is over,
the best go on, for longer and on more slots, and machines that nobody needs any more are given back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.policies.search.seer.bill import BilledPlan, billed_plan
from shoestring.policies.search.seer.plan import Bracket
from shoestring.policies.search.seer.replan import places_that_can_be_paid
from shoestring.policies.search.seer.rounds import ROUND_WAKERS, Verdict, play_rounds
from shoestring.policies.search.seer.terms import Parameters, terms_at_the_start


@dataclass(frozen=True)
class Seer:
    """Rounds by the plan that the bill allows.  Paper: SEER Alg. 1.

    Differs from the paper: the plan is in dollars (`seer_bill`); of all trials together the best go on, as many as the
    next stage has places (the print removes as many, bracket by bracket), the best of them to the widest places; the
    last stage eliminates nobody; the answer is the best value anybody ever reported.
    """

    parameters: Parameters
    wants: ClassVar[frozenset[Waker]] = ROUND_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        return play_rounds(state, event, self.plan, self._judge)

    def plan(self, state: RunView) -> BilledPlan:
        """Made anew from the spec and the prices at the start, whenever it is lost or the budget is amended."""
        spec = state.spec
        key = (self, "plan", spec.budget_usd, spec.deadline_s)
        return state.memo(key, lambda: billed_plan(terms_at_the_start(state, self.parameters)))

    def _judge(self, state: RunView, stage: int, racing: list[Job]) -> Verdict:
        plan = self.plan(state)
        if stage == 0:
            return best_go_on(state, plan.stages[0].brackets, racing)
        terms = terms_at_the_start(state, self.parameters)
        return best_go_on(state, places_that_can_be_paid(state, terms, plan, stage), racing)


def best_go_on(state: RunView, places: Sequence[Bracket], racing: list[Job]) -> Verdict:
    """As many as there are places, the best to the widest."""
    widest_first = [bracket.slots * state.spec.slots for bracket in reversed(places) for _ in range(bracket.trials)]
    widths = {job.id: slots for job, slots in zip(racing, widest_first, strict=False)}
    return widths, [job.id for job in racing[len(widest_first) :]]
