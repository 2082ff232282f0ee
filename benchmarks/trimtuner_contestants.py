"""The contestants: the optimizer of this project with each of its methods, and peers where they are installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from benchmarks.trimtuner_botorch import BotorchSearch
from benchmarks.trimtuner_peers import OptunaSearch, RandomSearch
from benchmarks.trimtuner_play import Ask, Evaluation, Player
from benchmarks.trimtuner_rows import DEFAULT
from benchmarks.trimtuner_tables import Table
from shoestring.errors import SpecError
from shoestring.optimizer.candidates import key
from shoestring.optimizer.methods.protocol import Method
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.space.constraints import COST, Constraint


class Ours:
    """The ask-and-tell optimizer, with known prices and unknown times."""

    def __init__(self, table: Table, seed: int, method: str | Method) -> None:
        self.table = table
        self.row = {key(config): row for row, config in enumerate(table.configs)}
        self.column = {fraction: column for column, fraction in enumerate(table.fractions)}
        self.optimizer = Optimizer(
            list(table.configs),
            **{table.direction: table.metric},
            constraints=[Constraint("cost", table.limit_usd)],
            fractions=table.fractions,
            usd_per_hour=lambda config: float(table.usd_per_hour[self.row[key(config)]]),
            seed=seed,
            method=method,
        )

    def ask(self) -> Ask | None:
        try:
            suggestion = self.optimizer.ask()
        except SpecError:  # every candidate had its full run
            return None
        most = suggestion.end_at.get(COST, math.inf)
        return Ask(self.row[key(suggestion.config)], self.column[suggestion.fraction], most)

    def tell(self, candidate: int, fraction: int, seen: Evaluation) -> None:
        suggestion = Suggestion(self.table.configs[candidate], self.table.fractions[fraction])
        told = {self.table.metric: seen.objective}
        self.optimizer.tell(suggestion, seconds=seen.seconds, cost=seen.usd, killed=seen.killed, **told)

    def best(self) -> int | None:
        try:
            return self.row[key(self.optimizer.best().config)]
        except SpecError:  # nothing to recommend yet
            return None


EVERYWHERE = (DEFAULT, "eic", "eic_usd", "eic_usd_2")
ON_THE_PAPERS_TABLES = (
    "trimtuner_gp",
    "trimtuner_dt",
    "trimtuner_gp_as_printed",
    "trimtuner_dt_as_printed",
    "fabolas",
    "ei",
)
"""The paper's own methods, as printed and corrected, and what it compares them with."""


def contestants() -> dict[str, Callable[[Table, int], Player]]:
    """Each makes a method for a table and a seed."""
    found: dict[str, Callable[[Table, int], Player]] = {
        method: partial(Ours, method=method) for method in (*EVERYWHERE, *ON_THE_PAPERS_TABLES)
    }
    found["random"] = RandomSearch
    if find_spec("optuna"):
        found["optuna_tpe"] = partial(OptunaSearch, sampler="tpe")
        if find_spec("torch"):
            found["optuna_gp"] = partial(OptunaSearch, sampler="gp")
    if find_spec("botorch"):
        found["botorch"] = BotorchSearch
    return found


def one_thread() -> None:
    """Keep the numerical libraries of this process to one thread: processes share the cores among themselves."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)
