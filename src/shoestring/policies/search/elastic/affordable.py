"""How many machines a budget pays for from the first grant to the deadline: the cluster of a search that keeps one."""

from __future__ import annotations

from shoestring.kernel.view import RunView
from shoestring.policies.search.seer.bill import Terms
from shoestring.policies.search.seer.terms import Parameters, terms_at_the_start


def affordable_slots(state: RunView, parameters: Parameters) -> int:
    """On all of these machines together, as far as whole workers can use them."""
    key = (affordable_slots, parameters, state.spec.budget_usd, state.spec.deadline_s)
    terms = state.memo(key, lambda: terms_at_the_start(state, parameters))
    return steady_machines(terms) * terms.slots * state.spec.slots


def steady_machines(terms: Terms) -> int:
    """One at least (the guard ends it when its money is gone), and no more than the run may rent."""
    usd = terms.lease_usd(max(0.0, terms.deadline_s - terms.provision_s))
    if usd <= 0:
        return terms.most_machines
    return max(1, min(terms.most_machines, int(terms.budget_usd / usd * (1 + 1e-9))))
