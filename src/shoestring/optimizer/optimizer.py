"""Ask and tell, without any cloud.

    optimizer = Optimizer(space, minimize="loss", constraints=["cost <= 0.10"], fractions=[1/16, 1/4, 1])
    suggestion = optimizer.ask()                               # a configuration and a data fraction
    optimizer.tell(suggestion, loss=0.31, seconds=12.0, cost=0.004)
    optimizer.best()                                           # a configuration, and how sure its constraints are

The same seed and the same sequence of calls give the same suggestions. Pending suggestions (asked, not told yet) are
taken into account, so several runs can be in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import filterfalse

import numpy as np

from shoestring.errors import SpecError
from shoestring.optimizer.candidate_pool import pool_of
from shoestring.optimizer.candidates import Candidates, Numbers, key
from shoestring.optimizer.history import History, Problem
from shoestring.optimizer.methods.protocol import Memory, Method
from shoestring.optimizer.methods.registry import METHODS
from shoestring.optimizer.observations import FULL, Answer, Observation, Suggestion
from shoestring.optimizer.posterior import HOUR_S
from shoestring.space.constraints import COST, SECONDS, Constraint, parse_all
from shoestring.values import Config, as_fraction, as_fractions, as_number, did_you_mean, is_reference

MOST_BEST = 4
"""Configurations around which a space is sampled closely."""


class Optimizer:
    """Chooses configurations and data fractions so that the best feasible one is found at little cost."""

    def __init__(
        self,
        space: object,
        *,
        minimize: str | None = None,
        maximize: str | None = None,
        constraints: str | Constraint | Iterable[str | Constraint] = (),
        candidates: Iterable[Config] | None = None,
        fractions: Iterable[float] = (FULL,),
        usd_per_hour: Callable[[Config], float] | float | None = None,
        seed: int = 0,
        method: str | Method = "trimtuner",
    ) -> None:
        """`space` is a space as for `tune`, or a list of configurations; `candidates`, where given, are the only ones
        of the space. `usd_per_hour` is what an hour of a configuration costs: with it only times have to be learned,
        and telling the seconds is enough. `method` is a name or an instance, for example
        `TrimTunerGpAsPrinted(ByDirect(0.1))`."""
        if (minimize is None) == (maximize is None):
            raise SpecError("one objective is needed", hint="name the metric: minimize='loss' or maximize='accuracy'")
        if isinstance(method, str) and method not in METHODS:
            raise SpecError(
                f"method {method!r} is unknown", hint=did_you_mean(method, filterfalse(is_reference, METHODS))
            )
        self._problem = Problem(
            objective=str(minimize if minimize is not None else maximize),
            minimize=minimize is not None,
            constraints=parse_all(constraints),
            fractions=as_fractions(fractions) or (FULL,),
            usd_per_hour=None if usd_per_hour is None else _price(usd_per_hour),
            seed=seed,
        )
        self._pool = pool_of(space, candidates)
        self._prices: tuple[Candidates, Numbers] | None = None
        self._method = METHODS[method]() if isinstance(method, str) else method
        self._observations: list[Observation] = []
        self._rows: list[int] = []
        self._pending: list[tuple[int, float]] = []
        if usd_per_hour is not None:
            self._history()  # so that prices are refused before anything is run

    @property
    def observations(self) -> tuple[Observation, ...]:
        """All observations, in order."""
        return tuple(self._observations)

    def ask(self, *, last: bool = False) -> Suggestion:
        """The next run. `last`: no other will follow, so if none was run on the full data yet, this one is."""
        history = self._history(last=last)
        if not _is_left(history):
            raise SpecError(
                f"all {self._pool.size:,.0f} candidates have been suggested on the full data: no candidate is left",
                hint="best() has the answer",
            )
        choice = self._method.choose(history)
        config = history.candidates.configs[choice.row]
        self._pending.append((self._pool.remember(config), choice.fraction))
        end_at = history.ends(choice.fraction if self._method.stops_early else FULL)
        return Suggestion(dict(config), choice.fraction, choice.why, end_at)

    @property
    def exhausted(self) -> bool:
        """Has every candidate been suggested on the full data?"""
        return not _is_left(self._history())

    def tell(
        self,
        suggestion: Suggestion,
        *,
        seconds: float | None = None,
        cost: float | None = None,
        killed: bool = False,
        **metrics: float,
    ) -> None:
        """Report the result of a run: its objective and the metrics of the constraints, by name.

        An objective of NaN or infinity is a run that diverged. `killed` is a run that was ended at a limit: its seconds
        and cost are lower bounds, and it need not have an objective.
        """
        given = {SECONDS: seconds, COST: cost, **metrics}
        reported = {name: as_number(value, name) for name, value in given.items() if value is not None}
        reported = {name: value if math.isfinite(value) else math.nan for name, value in reported.items()}
        fraction = as_fraction(suggestion.fraction)
        self._complete(reported, suggestion.config)
        self._require(reported, killed)
        objective = reported.get(self._problem.objective, math.nan)
        self.learn(Observation(dict(suggestion.config), fraction, objective, reported, killed))

    def learn(self, seen: Observation) -> None:
        """The same as one Observation, and nothing is required: what is unknown of the run is NaN."""
        metrics = dict(seen.metrics)
        self._complete(metrics, seen.config)
        row = self._pool.remember(seen.config)
        if (row, seen.fraction) in self._pending:
            self._pending.remove((row, seen.fraction))
        self._observations.append(replace(seen, metrics=metrics))
        self._rows.append(row)

    def best(self) -> Answer:
        """The recommended configuration, and how sure its objective and its constraints are."""
        if not self._observations:
            raise SpecError("nothing can be recommended before the first tell()", hint="ask, run, tell")
        return self._method.recommend(self._history())

    def expect(self, suggestion: Suggestion) -> None:
        """Add a pending run, as if it had been suggested here."""
        self._pending.append((self._pool.remember(suggestion.config), as_fraction(suggestion.fraction)))

    def memory(self) -> Memory:
        """The method's state from ask to ask, as plain JSON. With it, the observations and the pending runs, an
        optimizer in another process continues as this one would."""
        return self._method.memory()

    def recall(self, memory: Memory) -> None:
        self._method.recall(memory)

    def reprice(self, usd_per_hour: Callable[[Config], float] | float) -> None:
        """Set new prices from now on. Observations keep their cost."""
        price = _price(usd_per_hour)
        candidates = self._history().candidates
        self._prices = (candidates, _prices(candidates, price))
        self._problem = replace(self._problem, usd_per_hour=price)

    def _history(self, *, last: bool = False) -> History:
        turn = (self._problem.seed, len(self._observations), len(self._pending))
        candidates = self._pool.candidates(turn, self._best_known())
        observed = tuple(self._observations)
        return History(
            self._problem, candidates, observed, tuple(self._rows), tuple(self._pending), self._priced(candidates), last
        )

    def _best_known(self) -> list[Config]:
        """The best at each of the largest fractions that were run: similar ones may be better still."""
        if not self._method.near_the_best:
            return []
        sign = 1.0 if self._problem.minimize else -1.0
        whole = [seen for seen in self._observations if math.isfinite(seen.objective) and not seen.killed]
        best: dict[float, Config] = {}
        for seen in sorted(whole, key=lambda seen: (-seen.fraction, sign * seen.objective)):
            best.setdefault(seen.fraction, seen.config)
        return list({key(config): config for config in best.values()}.values())[:MOST_BEST]

    def _priced(self, candidates: Candidates) -> Numbers | None:
        usd_per_hour = self._problem.usd_per_hour
        if usd_per_hour is None:
            return None
        if self._prices is None or self._prices[0] is not candidates:
            self._prices = (candidates, _prices(candidates, usd_per_hour))
        return self._prices[1]

    def _complete(self, reported: dict[str, float], config: Config) -> None:
        """Where the price is known, dollars follow from seconds and seconds from dollars."""
        if self._problem.usd_per_hour is None:
            return
        usd_per_s = _price_of(config, self._problem.usd_per_hour) / HOUR_S
        if SECONDS in reported:
            reported.setdefault(COST, reported[SECONDS] * usd_per_s)
        elif COST in reported:
            reported[SECONDS] = reported[COST] / usd_per_s

    def _require(self, reported: Mapping[str, float], killed: bool) -> None:
        for name in (SECONDS, COST):
            if name in reported and not reported[name] >= 0.0:
                raise SpecError(f"{name}={reported[name]} is not possible for a run", hint="tell what it really took")
        if killed:
            return
        wanted = {self._problem.objective: "is the objective"}
        wanted |= {constraint.metric: f"has a constraint ({constraint})" for constraint in self._problem.constraints}
        for name, why in wanted.items():
            if name not in reported:
                names = ", ".join(reported) or "nothing"
                raise SpecError(f"{name} {why}, and this run reports {names}", hint=f"tell(suggestion, {name}=...)")


def _is_left(history: History) -> bool:
    return bool(history.untried[:, -1].any())


def _price(usd_per_hour: Callable[[Config], float] | float) -> Callable[[Config], float]:
    if callable(usd_per_hour):
        return usd_per_hour
    price = as_number(usd_per_hour, "usd_per_hour")
    return lambda _config: price


def _prices(candidates: Candidates, usd_per_hour: Callable[[Config], float]) -> Numbers:
    return np.array([_price_of(config, usd_per_hour) for config in candidates.configs], dtype=np.float64)


def _price_of(config: Config, usd_per_hour: Callable[[Config], float]) -> float:
    price = float(usd_per_hour(config))
    if not 0.0 < price < math.inf:
        raise SpecError(f"usd_per_hour is {price} for {config!r}", hint="give a price above 0")
    return price


class SharedOptimizer(Optimizer):
    def ask_beside(self, under_way: Iterable[Suggestion]) -> Suggestion:
        """The next run, with exactly these pending: not what was suggested here before and abandoned, nor what was
        suggested here and then run differently."""
        self._pending.clear()
        for suggestion in under_way:
            self.expect(suggestion)
        return self.ask()
