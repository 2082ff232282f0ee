"""The cheapest machines for a fixed elimination schedule that meet a deadline: a greedy search over forecasts.

A plan is one share of machines per stage. A step changes the shares of consecutive stages: one stage alone, or several
that should keep the same machines because new ones cost time. There are two searches, because each can get stuck in a
local optimum where the other does not: from the cheapest cluster of one size, downhill in cost; and from the cheapest
plan of all, buying time where a second costs least until the deadline is met, then downhill too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from shoestring.policies.search.rubberband.plan import CostModel, RubberbandPlan, Schedule, Share, forecast, menu

Chosen = tuple[Share, ...]
Menu = Sequence[Sequence[Share]]
"""For each stage the possible shares, fewest machines first."""
GAIN = 1e-9
"""A relative change smaller than this is no improvement, only rounding."""


class _Search:
    def __init__(self, schedule: Schedule, cost_model: CostModel, in_hand: int) -> None:
        self.schedule, self.cost_model, self.in_hand = schedule, cost_model, in_hand
        self.menu: Menu = menu(schedule, cost_model)
        self._known: dict[Chosen, RubberbandPlan] = {}

    def plan(self, chosen: Chosen) -> RubberbandPlan:
        found = self._known.get(chosen)
        if found is None:
            found = self._known[chosen] = forecast(self.schedule, chosen, self.cost_model, in_hand=self.in_hand)
        return found

    def of_one_size(self) -> Iterator[Chosen]:
        """The plans of a fixed cluster, in which every stage uses as many of its machines as speed it up."""
        for machines in sorted({share.machines for stage in self.menu for share in stage}):
            yield tuple(_with(stage, machines) for stage in self.menu)

    def steps(self, chosen: Chosen) -> Iterator[Chosen]:
        for first in range(len(chosen)):
            for last in range(first, len(chosen)):
                sizes = {share.machines for stage in self.menu[first : last + 1] for share in stage}
                for machines in sizes:
                    between = tuple(_with(stage, machines) for stage in self.menu[first : last + 1])
                    if between != chosen[first : last + 1]:
                        yield chosen[:first] + between + chosen[last + 1 :]

    def downhill(self, chosen: Chosen, deadline_s: float) -> Chosen:
        """Take the step that saves most while the deadline is met, for as long as one saves anything."""
        while True:
            allowed = [step for step in self.steps(chosen) if self.plan(step).latest_s <= deadline_s]
            best = min(allowed, key=lambda step: self.plan(step).usd, default=chosen)
            if self.plan(best).usd >= self.plan(chosen).usd * (1 - GAIN):
                return chosen
            chosen = best

    def hurry(self, chosen: Chosen, deadline_s: float) -> Chosen:
        """Buy time where a second costs least until the deadline is met, or none can be bought."""
        while (now := self.plan(chosen)).latest_s > deadline_s:
            faster = [step for step in self.steps(chosen) if self.plan(step).latest_s < now.latest_s * (1 - GAIN)]
            if not faster:
                return chosen

            def usd_per_s(step: Chosen, now: RubberbandPlan = now) -> float:
                saved_s = now.latest_s - max(self.plan(step).latest_s, deadline_s)
                return (self.plan(step).usd - now.usd) / saved_s

            chosen = min(faster, key=usd_per_s)
        return chosen


def cheapest(
    schedule: Schedule, cost_model: CostModel, deadline_s: float, *, in_hand: int = 0
) -> RubberbandPlan | None:
    """The cheapest plan found that meets the deadline even with slow trials; None if none does."""
    search = _Search(schedule, cost_model, in_hand)
    anyhow = min(search.of_one_size(), key=lambda chosen: search.plan(chosen).usd)
    starts = [search.hurry(search.downhill(anyhow, float("inf")), deadline_s)]
    kept = [chosen for chosen in search.of_one_size() if search.plan(chosen).latest_s <= deadline_s]
    if kept:
        starts.append(min(kept, key=lambda chosen: search.plan(chosen).usd))
    found = [search.downhill(start, deadline_s) for start in starts if search.plan(start).latest_s <= deadline_s]
    return min((search.plan(chosen) for chosen in found), key=lambda plan: plan.usd, default=None)


def fastest(schedule: Schedule, cost_model: CostModel, *, in_hand: int = 0) -> RubberbandPlan:
    """The shortest plan there is; of equally short ones, the cheapest found."""
    search = _Search(schedule, cost_model, in_hand)
    hurried = min(
        (search.hurry(chosen, 0.0) for chosen in search.of_one_size()), key=lambda chosen: search.plan(chosen).latest_s
    )
    return search.plan(search.downhill(hurried, search.plan(hurried).latest_s))


def of_one_size(schedule: Schedule, cost_model: CostModel, machines: int) -> RubberbandPlan:
    """The plan of a cluster of so many machines, held from the first stage to the last."""
    chosen = []
    for stage in menu(schedule, cost_model):
        quickest = min((share for share in stage if share.machines <= machines), key=lambda share: share.train_s)
        chosen.append(replace(quickest, machines=machines))
    return forecast(schedule, chosen, cost_model)


def _with(stage: Sequence[Share], machines: int) -> Share:
    """The share of a stage with at most so many machines; if that is too few, its smallest share."""
    return stage[max(0, bisect_right(stage, machines, key=lambda share: share.machines) - 1)]
