"""SEER: sequential elimination with elastic resources. Many trials start on few slots each; after each round the best
are promoted, for longer and on more slots, and machines that are no longer needed are released."""

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
from shoestring.policies.search.seer.replan import affordable_brackets
from shoestring.policies.search.seer.rounds import ROUND_WAKERS, Verdict, run_rounds
from shoestring.policies.search.seer.terms import Parameters, terms_at_start


@dataclass(frozen=True)
class Seer:
    """Rounds by the plan that the bill allows.  Paper: SEER Alg. 1.

    Differs from the paper: the plan is in dollars (`seer.bill`); the best of all trials together are promoted, as many
    as the next stage holds (the print removes as many, bracket by bracket), the best of them to the widest brackets;
    the last stage eliminates none; the answer is the best value that any trial ever reported.
    """

    parameters: Parameters
    wants: ClassVar[frozenset[Waker]] = ROUND_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        return run_rounds(state, event, self.plan, self._judge)

    def plan(self, state: RunView) -> BilledPlan:
        """Rebuilt from the spec and the prices at the start, whenever it is lost or the budget is amended."""
        spec = state.spec
        key = (self, "plan", spec.budget_usd, spec.deadline_s)
        return state.memo(key, lambda: billed_plan(terms_at_start(state, self.parameters)))

    def _judge(self, state: RunView, stage: int, racing: list[Job]) -> Verdict:
        plan = self.plan(state)
        if stage == 0:
            return promote_best(state, plan.stages[0].brackets, racing)
        terms = terms_at_start(state, self.parameters)
        return promote_best(state, affordable_brackets(state, terms, plan, stage), racing)


def promote_best(state: RunView, places: Sequence[Bracket], racing: list[Job]) -> Verdict:
    """As many as the brackets hold, the best to the widest."""
    widest_first = [bracket.slots * state.spec.slots for bracket in reversed(places) for _ in range(bracket.trials)]
    widths = {job.id: slots for job, slots in zip(racing, widest_first, strict=False)}
    return widths, [job.id for job in racing[len(widest_first) :]]
