"""Plans of the searches that SEER is compared with: stages, trials and slots for a budget and a deadline.

Each uses the budget as fully as whole machines allow; the feasible minimum is the same for all (`seer.bill`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from shoestring.policies.search.seer.bill import (
    BilledPlan,
    SeerTerms,
    bill_usd,
    check_feasible,
    is_affordable,
    more_machines,
    more_time,
)
from shoestring.policies.search.seer.plan import Bracket, SeerPlan, Stage


def grid_plan(terms: SeerTerms) -> BilledPlan:
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
            return is_affordable(terms, [half_s, half_s], _machines(terms, stages(machines, width)))

        machines = _most(fits, math.ceil(width / terms.slots), terms.most_machines)
        if machines is not None:
            return _billed(terms, [half_s, half_s], stages(machines))
    return _billed(terms, [terms.t_min_s], [[Bracket(trials=1, slots=terms.p_min)]])


def halving_plan(terms: SeerTerms) -> BilledPlan:
    """After each stage one trial in eta is promoted and trained eta times as much: on eta times as many slots or,
    beyond p_max, for longer. So every stage costs the same. There are as many stages as the deadline allows and as the
    budget has trials to eliminate in them."""
    check_feasible(terms)
    alone = _machines(terms, [[Bracket(trials=1, slots=terms.p_min)]])
    longest_s = _largest(terms.t_min_s, terms.training_s, lambda seconds: is_affordable(terms, [seconds], alone))
    plans = (_halved(terms, lengths, widths) for lengths, widths in reversed([*_halvings(terms, longest_s)]))
    return next(plan for plan in plans if plan is not None)


def _halvings(terms: SeerTerms, seconds: float) -> Iterator[tuple[list[float], list[int]]]:
    """Lengths and widths of the stages, for one stage, for two, and so on, while the first is long enough."""
    widths: list[int] = []
    while (trained := terms.p_min * terms.eta ** len(widths)) <= terms.most_machines * terms.slots:
        widths.append(int(min(trained, terms.p_max)))
        lengths = [terms.eta**k / width for k, width in enumerate(widths)]
        lengths = [length / math.fsum(lengths) * seconds for length in lengths]
        if lengths[0] < terms.t_min_s and len(widths) > 1:
            return
        yield lengths, widths.copy()


def _halved(terms: SeerTerms, lengths: Sequence[float], widths: Sequence[int]) -> BilledPlan | None:
    """For as many trials as the budget pays; None if there are too few for the last elimination to prune any."""

    def stages(trials: int) -> list[list[Bracket]]:
        left = [max(1, math.floor(trials / terms.eta**k + 1e-9)) for k in range(len(widths))]
        return [[Bracket(trials=n, slots=width)] for n, width in zip(left, widths, strict=True)]

    least = math.ceil(2 * terms.eta ** (len(widths) - 2) - 1e-9) if len(widths) > 1 else 1
    most = terms.most_machines * terms.slots // terms.p_min
    trials = _most(lambda trials: is_affordable(terms, lengths, _machines(terms, stages(trials))), least, most)
    return None if trials is None else _billed_in_full(terms, lengths, stages(trials))


def hyperband_plan(terms: SeerTerms) -> BilledPlan:
    """All brackets in parallel, each stopping its trials at R / eta^i, for the largest R that deadline and budget
    allow; then as many times Hyperband's trials as the rest of the budget pays.
    Paper: SEER section 6.3, E-Hyperband.
    """
    check_feasible(terms)

    def made(R: float, times: float) -> tuple[list[float], list[list[Bracket]]]:
        halvings = max(0, math.floor(math.log(R / terms.t_min_s) / math.log(terms.eta) + 1e-9))
        stops = [R * terms.eta ** (stage - halvings) for stage in range(halvings + 1)]
        lengths = [stop - start for start, stop in zip([0.0, *stops], stops, strict=False)]
        return lengths, [
            [_bracket(terms, halvings, bracket, stage, times) for bracket in range(halvings + 1)]
            for stage in range(halvings + 1)
        ]

    def fits(R: float, times: float) -> bool:
        lengths, stages = made(R, times)
        return is_affordable(terms, lengths, _machines(terms, stages))

    R = _largest(terms.t_min_s, terms.training_s, lambda R: fits(R, 1.0))
    most = terms.most_machines * terms.slots / terms.p_min
    times = _largest(1.0, max(1.0, most), lambda times: fits(R, times))
    return _billed_in_full(terms, *made(R, times))


def _bracket(terms: SeerTerms, halvings: int, bracket: int, stage: int, times: float) -> Bracket:
    """Hyperband's trials for a bracket that halves so often (the first the most), in a stage."""
    rungs = halvings - bracket
    begin = times * math.ceil((halvings + 1) / (rungs + 1) * terms.eta**rungs)
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
    """By bisection; `low` is assumed to fit."""
    if fits(high):
        return high
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _machines(terms: SeerTerms, stages: Sequence[Sequence[Bracket]]) -> list[int]:
    slots = [sum(bracket.trials * bracket.slots for bracket in brackets) for brackets in stages]
    return [max(1, math.ceil(max(slots[k:]) / terms.slots)) for k in range(len(slots))]


def _billed_in_full(terms: SeerTerms, lengths: Sequence[float], stages: Sequence[Sequence[Bracket]]) -> BilledPlan:
    """With the rest of the budget spent on more machines, then on time, and every paid slot in use."""
    machines = more_machines(terms, lengths, _machines(terms, stages))
    return _billed(terms, more_time(terms, lengths, machines), _seated(terms, stages, machines))


def _seated(terms: SeerTerms, stages: Sequence[Sequence[Bracket]], machines: Sequence[int]) -> list[list[Bracket]]:
    """More trials on free slots: in each stage for the bracket that eliminates most."""
    seated: list[list[Bracket]] = []
    for brackets, held in zip(stages, machines, strict=True):
        widths = [bracket.slots for bracket in brackets]
        trials = [bracket.trials for bracket in brackets]
        before = [bracket.trials for bracket in seated[-1]] if seated else [math.inf] * len(brackets)
        free = held * terms.slots - sum(n * width for n, width in zip(trials, widths, strict=True))
        while places := [i for i, width in enumerate(widths) if width <= free and trials[i] < before[i]]:
            more = max(places, key=lambda i: before[i] - trials[i])
            trials[more] += 1
            free -= widths[more]
        seated.append([Bracket(trials=n, slots=width) for n, width in zip(trials, widths, strict=True)])
    return seated


def _billed(terms: SeerTerms, lengths: Sequence[float], stages: Sequence[Sequence[Bracket]]) -> BilledPlan:
    machines = _machines(terms, stages)
    made, start = [], 0.0
    for length, brackets in zip(lengths, stages, strict=True):
        made.append(Stage(start=start, stop=start + length, brackets=tuple(brackets)))
        start += length
    return BilledPlan(
        plan=SeerPlan(stages=tuple(made)), machines=tuple(machines), usd=bill_usd(terms, lengths, machines)
    )
