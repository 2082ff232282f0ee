"""SEER as its paper prints it: slot-time instead of bills, and the lines of its algorithm to the letter.

For comparison only. The slips of the print are kept; only what could not run at all is fixed: a trial that the print
puts into two brackets at once trains in the wider one, and stages count from the first granted machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.records import Job
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.market.billing import HOUR_S
from shoestring.policies.search.seer.bill import BilledPlan, SeerTerms, bill_usd
from shoestring.policies.search.seer.plan import Brackets, Request, bracket_parameters, plan_as_printed
from shoestring.policies.search.seer.rounds import ROUND_WAKERS, Verdict, Widths, run_rounds
from shoestring.policies.search.seer.terms import Parameters, terms_at_start

PRINTED_T_MIN_S = 60.0
"""One minute, the paper's default."""


@dataclass(frozen=True)
class SeerAsPrinted:
    """Rounds by the printed plan.  Paper: SEER Alg. 1 l.1-13."""

    parameters: Parameters
    wants: ClassVar[frozenset[Waker]] = ROUND_WAKERS

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        return run_rounds(state, event, self.plan, self._judge)

    def plan(self, state: RunView) -> BilledPlan:
        key = (self, "plan", state.spec.budget_usd, state.spec.deadline_s)
        return state.memo(key, lambda: self._plan(state))

    def _plan(self, state: RunView) -> BilledPlan:
        """With as many whole machines as hold its slots. If the bill exceeds the budget, the guard cuts it."""
        terms = terms_at_start(state, self.parameters)
        made = plan_as_printed(self._request(state))
        machines = [min(terms.most_machines, max(1, math.ceil(stage.slots / terms.slots))) for stage in made.stages]
        usd = bill_usd(terms, [stage.stop - stage.start for stage in made.stages], machines)
        return BilledPlan(plan=made, machines=tuple(machines), usd=usd)

    def _request(self, state: RunView) -> Request:
        return printed_request(terms_at_start(state, self.parameters), self.parameters)

    def _judge(self, state: RunView, k: int, racing: list[Job]) -> Verdict:
        """`racing` is best first and `k` counts the stage that begins from 0; the print orders the worst first."""
        printed = bracket_parameters(self._request(state))
        eta, slots = self.parameters.eta, state.spec.slots
        out = self._removed(printed, k, racing, slots) if k else []
        left = [job for job in (reversed(racing) if k else racing) if job.id not in out]
        widths: Widths = {}
        s = 1
        for N, P in zip(printed.N, printed.P, strict=True):
            n = math.floor(N / eta**k)
            widths |= {
                job.id: int(P) * slots for job in left[s - 1 : s + n]
            }  # the s-th to the (s + n)-th: one too many
            s = max(1, n)  # not s + n: the next bracket takes some of the same trials
        return widths, out

    def _removed(self, printed: Brackets, k: int, racing: list[Job], slots: int) -> list[JobId]:
        """Of each bracket as many of the worst as should have been promoted."""
        out: list[JobId] = []
        for N, P in zip(printed.N, printed.P, strict=True):
            bracket = [job.id for job in racing if job.wanted and job.slots == int(P) * slots]
            out += bracket[max(0, len(bracket) - math.floor(N / self.parameters.eta**k)) :]
        return out


def printed_request(terms: SeerTerms, parameters: Parameters) -> Request:
    """The print counts slot-time and no bills, no time for machines to come up and none to release them."""
    limit = terms.most_machines * terms.slots * terms.deadline_s
    usd_per_hour = terms.lease_usd(HOUR_S)
    return Request(
        deadline=terms.deadline_s,
        budget=min(limit, terms.budget_usd / usd_per_hour * HOUR_S * terms.slots) if usd_per_hour > 0 else limit,
        eta=terms.eta,
        nu=terms.nu,
        p_min=terms.p_min,
        p_max=terms.p_max,
        t_min=parameters.t_min_s or min(PRINTED_T_MIN_S, terms.deadline_s),
    )
