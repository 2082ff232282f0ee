"""A synthetic table: a network on machines of several sizes, whose error falls with the data and whose time grows."""

from __future__ import annotations

import math

import shoestring as ss
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.values import Config

FRACTIONS = (1 / 32, 1 / 8, 1 / 4, 1 / 2, 1.0)
LIMIT_USD = 0.05
SPACE = {
    "rate": ss.integer(0, 9),
    "width": ss.choice(16, 64, 256),
    "machines": ss.integer(1, 8),
    "kind": ss.choice("small", "large"),
}
FEW = {**SPACE, "rate": ss.integer(4, 7), "machines": ss.integer(1, 3)}
"""A part of the space."""


def price(config: Config) -> float:
    return float(config["machines"]) * {"small": 0.1, "large": 0.35}[str(config["kind"])]  # type: ignore[arg-type]


def error(config: Config, fraction: float = 1.0) -> float:
    rate = (float(config["rate"]) - 6.0) / 10.0  # type: ignore[arg-type]
    best = 0.04 * {16: 2.0, 64: 1.3, 256: 1.0}[int(config["width"])] + 0.6 * rate**2  # type: ignore[arg-type]
    return float(min(0.9, best * fraction**-0.3))


def seconds(config: Config, fraction: float = 1.0) -> float:
    speed = float(config["machines"]) ** 0.7 * {"small": 1.0, "large": 3.0}[str(config["kind"])]  # type: ignore[arg-type]
    work = 600.0 * {16: 1.0, 64: 1.6, 256: 3.0}[int(config["width"])]  # type: ignore[arg-type]
    return float(work * fraction**0.9 / speed)


def usd(config: Config, fraction: float = 1.0) -> float:
    return price(config) * seconds(config, fraction) / 3600.0


def optimizer(**changes: object) -> Optimizer:
    asked = {"space": SPACE, "minimize": "error", "constraints": f"cost <= {LIMIT_USD}", "fractions": FRACTIONS}
    return Optimizer(**{**asked, "usd_per_hour": price, **changes})  # type: ignore[arg-type]


def space_for(method: str) -> object:
    """A part of the space where choosing takes long: all candidates are evaluated, or trees are grown."""
    return FEW if method in ("fabolas", "trimtuner_dt", "trimtuner_dt_as_printed") else SPACE


def run(optimizer: Optimizer, suggestion: Suggestion) -> float:
    """Tell what the table says, and return the bill. A run is killed when its bill reaches the limit, or where there is
    no hope left for it."""
    config, fraction = suggestion.config, suggestion.fraction
    bill, most = usd(config, fraction), min(LIMIT_USD, suggestion.end_at.get("cost", LIMIT_USD))
    if bill > most:
        optimizer.tell(suggestion, seconds=seconds(config, fraction) * most / bill, killed=True)
        return most
    optimizer.tell(suggestion, error=error(config, fraction), seconds=seconds(config, fraction))
    return bill


def quality(config: Config) -> float:
    """Accuracy of the full run, 0 if it costs too much."""
    return 1.0 - error(config) if usd(config) <= LIMIT_USD else 0.0


def spent_until_good(optimizer: Optimizer, share: float = 0.99, budget_usd: float = 1.0) -> float:
    """What was spent when the recommendation first stayed at this share of the feasible optimum."""
    from shoestring.space.space import from_plain

    optimum = max(map(quality, from_plain(SPACE).grid(10)))
    spent, good_since = 0.0, math.inf
    while spent < budget_usd:
        spent += run(optimizer, optimizer.ask())
        good = quality(optimizer.best().config) >= share * optimum
        good_since = min(good_since, spent) if good else math.inf
    return good_since
