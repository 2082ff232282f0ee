"""Plans of the searches that SEER is compared with, on the same bill: stages, trials and slots for money and time.

Each uses the budget as fully as whole machines allow; the least that works is the same for all (`seer_bill`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from shoestring.search.seer_bill import BilledPlan, Terms, bill_usd, can_be_had, check_feasible
from shoestring.search.seer_plan import Bracket, Plan, Stage


def grid_plan(terms: Terms) -> BilledPlan:
    """Half of the time for as many trials as can be paid, half for the best one.  Paper: SEER section 6.3, E-Grid."""
    check_feasible(terms)
    half_s = terms.training_s / 2
    widest = min(terms.p_max, terms.most_machines * terms.slots)
    while half_s >= terms.t_min_s and widest >= terms.p_min:
        width, widest = int(widest), widest / 2

        def stages(machines: int, width: int = width) -> list[list[Bracket]]:
            exploring = Bracket(trials=machines * terms.slots // terms.p_min, slots=terms.p_min)
            return [[exploring], [Bracket(trials=1, slots=width)]]

        def fits(machines: int, width: int = width) -> bool:
            return can_be_had(terms, [half_s, half_s], _machines(terms, stages(machines, width)))

        machines = _most(fits, math.ceil(width / terms.slots), terms.most_machines)
        if machines is not None:
            return _billed(terms, [half_s, half_s], stages(machines))
    return _billed(terms, [terms.t_min_s], [[Bracket(trials=1, slots=terms.p_min)]])


def halving_plan(terms: Terms, machines: int) -> BilledPlan:
    """One cluster throughout: after each stage one trial in eta goes on, on eta times as many slots, for as long."""
    check_feasible(terms)
    slots = machines * terms.slots
    widths = [terms.p_min]
    while True:
        wider = min(math.floor(widths[-1] * terms.eta), terms.p_max, slots)
        if wider <= widths[-1] or terms.training_s / (len(widths) + 1) < terms.t_min_s:
            break
        widths.append(int(wider))
    lengths = [terms.training_s / len(widths)] * len(widths)
    return _billed(terms, lengths, [[Bracket(trials=max(1, slots // width), slots=width)] for width in widths])


def hyperband_plan(terms: Terms) -> BilledPlan:
    """All brackets side by side, each stopping its trials at R / eta^i, for the largest R that time and money allow;
    then as many times Hyperband's trials as the rest of the money pays, and with what is left still more for the first
    bracket, whose trials cost least.  Paper: SEER section 6.3, E-Hyperband."""
    check_feasible(terms)

    def made(R: float, times: float, more: int = 0) -> tuple[list[float], list[list[Bracket]]]:
        halvings = max(0, math.floor(math.log(R / terms.t_min_s) / math.log(terms.eta) + 1e-9))
        stops = [R * terms.eta ** (stage - halvings) for stage in range(halvings + 1)]
        lengths = [stop - start for start, stop in zip([0.0, *stops], stops, strict=False)]
        return lengths, [
            [
                _bracket(terms, halvings, bracket, stage, times, 0 if bracket else more)
                for bracket in range(halvings + 1)
            ]
            for stage in range(halvings + 1)
        ]

    def fits(R: float, times: float, more: int = 0) -> bool:
        lengths, stages = made(R, times, more)
        return can_be_had(terms, lengths, _machines(terms, stages))

    R = _largest(terms.t_min_s, terms.training_s, lambda R: fits(R, 1.0))
    most = terms.most_machines * terms.slots / terms.p_min
    times = _largest(1.0, max(1.0, most), lambda times: fits(R, times))
    return _billed(terms, *made(R, times, _most(lambda more: fits(R, times, more), 0, math.ceil(most)) or 0))


def _bracket(terms: Terms, halvings: int, bracket: int, stage: int, times: float, more: int) -> Bracket:
    """Hyperband's trials for a bracket that halves so often (the first the most), in a stage."""
    rungs = halvings - bracket
    begin = times * math.ceil((halvings + 1) / (rungs + 1) * terms.eta**rungs) + more
    halved = max(0, stage - bracket)
    return Bracket(trials=max(1, math.floor(begin / terms.eta**halved)), slots=terms.p_min)


def _most(fits: Callable[[int], bool], least: int, limit: int) -> int | None:
    """The largest whole number up to the limit that fits, if the least one does."""
    if least > limit or not fits(least):
        return None
    low, high = least, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _largest(low: float, high: float, fits: Callable[[float], bool]) -> float:
    """By bisection; `low` is taken to fit."""
    if fits(high):
        return high
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _machines(terms: Terms, stages: Sequence[Sequence[Bracket]]) -> list[int]:
    slots = [sum(bracket.trials * bracket.slots for bracket in brackets) for brackets in stages]
    return [max(1, math.ceil(max(slots[k:]) / terms.slots)) for k in range(len(slots))]


def _billed(terms: Terms, lengths: Sequence[float], stages: Sequence[Sequence[Bracket]]) -> BilledPlan:
    machines = _machines(terms, stages)
    made, start = [], 0.0
    for length, brackets in zip(lengths, stages, strict=True):
        made.append(Stage(start=start, stop=start + length, brackets=tuple(brackets)))
        start += length
    return BilledPlan(plan=Plan(stages=tuple(made)), machines=tuple(machines), usd=bill_usd(terms, lengths, machines))
