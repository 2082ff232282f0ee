"""SEER's plan: how many trials on how many slots in each stage, inside a deadline and a budget of slot-time.

Pure arithmetic, in any unit of time: the deadline and `t_min` in that unit, the budget in slots times that unit. The
print has slips; `plan_as_printed` follows it to the letter, `plan` is what we use, and each departure is stated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from shoestring.errors import SpecError
from shoestring.kernel.types import Fact

TOLERANCE = 1e-9
"""For floors of quotients that are whole but for the last digit: 7.999999999 trials are 8."""


class Bracket(Fact, frozen=True, kw_only=True):
    trials: int
    slots: int
    """Per trial."""


class Stage(Fact, frozen=True, kw_only=True):
    start: float
    stop: float
    brackets: tuple[Bracket, ...]

    @property
    def slots(self) -> int:
        """All slots in use at once."""
        return sum(bracket.trials * bracket.slots for bracket in self.brackets)


class SeerPlan(Fact, frozen=True, kw_only=True):
    """Stages end by the clock; after each but the last, as many trials are promoted as the next stage holds."""

    stages: tuple[Stage, ...]

    @property
    def trials(self) -> int:
        return sum(bracket.trials for bracket in self.stages[0].brackets)

    @property
    def cost(self) -> float:
        """Slot-time."""
        return math.fsum(stage.slots * (stage.stop - stage.start) for stage in self.stages)


class Request(Fact, frozen=True, kw_only=True):
    """Inputs of a plan, with the paper's defaults."""

    deadline: float
    budget: float
    eta: float = 4.0
    """One in eta of the trials of a stage is promoted; each stage is eta times as long as the one before."""
    nu: float = 2.0
    """How much wider each bracket is than the one before."""
    p_min: int = 1
    p_max: float = math.inf
    t_min: float = 1.0
    """The least time a trial is trained before it may be pruned."""

    def __post_init__(self) -> None:
        for name, value in {"deadline": self.deadline, "budget": self.budget, "t_min": self.t_min}.items():
            if not (value > 0 and math.isfinite(value)):
                raise SpecError(f"{name}={value!r} must be a positive number")
        if not (self.eta > 1 and math.isfinite(self.eta)):
            raise SpecError(
                f"eta={self.eta!r} must be more than 1", hint="one trial in eta is promoted after each stage"
            )
        if not (self.nu >= 1 and math.isfinite(self.nu)):
            raise SpecError(f"nu={self.nu!r} must be 1 or more", hint="1 gives every trial the same width")
        if self.p_min < 1:
            raise SpecError(f"p_min={self.p_min!r} must be 1 or more")
        if self.p_max < self.p_min:
            raise SpecError(f"p_max={self.p_max!r} is less than p_min={self.p_min!r}", hint="a trial needs p_min slots")
        if self.deadline < self.t_min or self.budget < self.p_min * self.t_min:
            raise SpecError(
                f"deadline {self.deadline:g} and budget {self.budget:g} do not allow a single trial of {self.t_min:g} "
                f"on {self.p_min} slots",
                hint=f"the minimum is deadline {self.t_min:g} and budget {self.p_min * self.t_min:g}",
            )


class Brackets(Fact, frozen=True, kw_only=True):
    """The results of Algorithms 2 and 3, in the paper's letters."""

    R: float
    K: int
    t1: float
    B0: float
    B: tuple[float, ...]
    P: tuple[float, ...]
    N: tuple[int, ...]


def rounds(request: Request) -> tuple[float, int]:
    """How long the longest trial is trained (in t_min) and how many stages lead there.  Paper: SEER Alg. 2 l.2-3.

    The print searches for the largest R by bisection. With K stages R lies in (eta^(K-1), eta^K] and both conditions
    bound it in closed form, so the largest is found by trying each K.

    Differs from the paper: K is one at least, where the print has zero for R = 1.
    """
    T, B, eta = request.deadline / request.t_min, request.budget / request.t_min, request.eta
    best, K = (1.0, 1), 1
    while eta ** (K - 1) <= T:
        R = min(T * (eta - 1) / (eta * (1 - eta**-K)), B / (request.p_min * K), eta**K)
        if R > eta ** (K - 1) * (1 + TOLERANCE) and R >= best[0]:
            best = (R, K)
        K += 1
    return best


def bracket_budgets(request: Request, B0: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Slot-time and slots per trial of each bracket, narrowest first.  Paper: SEER Alg. 3."""
    B, nu, p_min, p_max = request.budget, request.nu, request.p_min, request.p_max
    if nu == 1:
        return (B,), (float(p_min),)
    q = 1
    while (q + 1) * nu**q <= B / B0 * (1 + TOLERANCE):
        q += 1
    if p_min * nu ** (q - 1) < p_max:
        P = [p_min * nu**i for i in range(q)] + [min(p_max, p_min * nu**q)]
        return (*[B0 * nu ** (q - 1)] * q, B - B0 * q * nu ** (q - 1)), tuple(P)
    P = []
    while p_min * nu ** len(P) < p_max:
        P.append(p_min * nu ** len(P))
    P.append(p_max)
    return tuple([B / len(P)] * len(P)), tuple(P)


def bracket_parameters(request: Request) -> Brackets:
    """Stages, their first length, trials and slots per bracket.  Paper: SEER Alg. 2."""
    R, K = rounds(request)
    t1 = request.t_min * R * request.eta ** -(K - 1)
    B0 = request.p_min * request.t_min * R * K
    B, P = bracket_budgets(request, B0)
    N = tuple(_floor(b / (K * t1 * p)) for b, p in zip(B, P, strict=True))
    return Brackets(R=R, K=K, t1=t1, B0=B0, B=B, P=P, N=N)


def plan_as_printed(request: Request) -> SeerPlan:
    """The plan to the letter: brackets without a trial are kept, fractional widths are truncated to whole slots."""
    found = bracket_parameters(request)
    return _staged(request, found, [(n, int(p)) for n, p in zip(found.N, found.P, strict=True)])


def plan(request: Request) -> SeerPlan:
    """The plan we use.

    Differs from the paper: widths are whole, brackets of one width are merged, those without a trial are removed, and
    the slot-time left over by rounding is used for more trials, bracket by bracket, for as long as any fits.
    """
    found = bracket_parameters(request)
    brackets: list[tuple[int, int]] = []
    for n, p in zip(found.N, found.P, strict=True):
        width = _floor(p)
        if brackets and width == brackets[-1][1]:
            brackets[-1] = (brackets[-1][0] + n, width)
        elif n > 0:
            brackets.append((n, width))
    if not brackets:
        brackets.append((1, request.p_min))
    return _filled(request, found, brackets)


def _filled(request: Request, found: Brackets, brackets: list[tuple[int, int]]) -> SeerPlan:
    spans = _spans(request, found)
    i = refused = 0
    while refused < len(brackets):
        n, p = brackets[i]
        brackets[i] = (n + 1, p)
        if _slot_time(spans, brackets) <= request.budget:
            refused = 0
        else:
            brackets[i] = (n, p)
            refused += 1
        i = (i + 1) % len(brackets)
    return _staged(request, found, brackets)


class _Span(NamedTuple):
    start: float
    stop: float
    one_in: float
    """So many of the trials of the first stage is left."""


def _spans(request: Request, found: Brackets) -> list[_Span]:
    spans, start = [], 0.0
    for k in range(found.K):
        length = found.t1 * request.eta**k
        spans.append(_Span(start, min(start + length, request.deadline), request.eta**k))
        start += length
    return spans


def _staged(request: Request, found: Brackets, brackets: list[tuple[int, int]]) -> SeerPlan:
    stages = []
    for start, stop, one_in in _spans(request, found):
        there = tuple(
            Bracket(trials=trials, slots=slots) for n, slots in brackets if (trials := _floor(n / one_in)) > 0
        )
        stages.append(Stage(start=start, stop=stop, brackets=there))
    return SeerPlan(stages=tuple(stages))


def _slot_time(spans: list[_Span], brackets: list[tuple[int, int]]) -> float:
    """`SeerPlan.cost` of these brackets, without making the plan: many are tried for one."""
    return math.fsum(
        [sum([_floor(n / one_in) * slots for n, slots in brackets]) * (stop - start) for start, stop, one_in in spans]
    )


def _floor(quotient: float) -> int:
    return math.floor(quotient * (1 + TOLERANCE) + TOLERANCE)
