"""How long a suggestion takes: one thread, CPU time, models refitted to all observations.

    python -m benchmarks.recommend [--quick] [--json FILE]

A synthetic space of mixed parameters, five data fractions, a constraint on cost. Every method gets the same number of
random observations, then `ask` and `tell` alternate: the median of the asks after the first, which alone has no warm
start.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from benchmarks.rows import Row, arguments, publish
from benchmarks.trimtuner_contestants import one_thread
from shoestring.optimizer.candidates import of_table
from shoestring.optimizer.filters.cmaes import ByCmaes
from shoestring.optimizer.filters.direct import ByDirect
from shoestring.optimizer.filters.filters import NoFilter
from shoestring.optimizer.methods.entropy import TrimTunerGp
from shoestring.optimizer.methods.protocol import Method
from shoestring.optimizer.methods.tree_entropy import TrimTunerDt
from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer
from shoestring.values import Config

FRACTIONS = (1 / 60, 1 / 10, 1 / 4, 1 / 2, 1.0)
LIMIT_USD = 0.02
OBSERVATIONS = 44
CONFIGURATIONS = 288
"""The paper counts each at five sizes: 1,440."""
ASKS, QUICK_ASKS = 5, 2
GROWTH_CANDIDATES = (1_440, 10_000, 100_000)
GROWTH_OBSERVATIONS = (100, 200, 500, 1_000)


@dataclass(frozen=True)
class Seen:
    accuracy: float
    seconds: float
    cost: float


def configurations(count: int) -> list[Config]:
    """A grid over the parameters of the paper, with more learning rates the more are wanted."""
    types, vcpus, batches, modes = ("small", "medium", "large", "huge"), (8, 16, 32, 48, 64, 80), (16, 256), (0, 1)
    rates = np.geomspace(1e-5, 1e-3, math.ceil(count / 96)).tolist()
    grid = product(types, vcpus, rates, batches, modes)
    names = ("vm_type", "vcpus", "learning_rate", "batch_size", "sync_mode")
    return [dict(zip(names, values, strict=True)) for values, _ in zip(grid, range(count), strict=False)]


def run(config: Config, fraction: float) -> Seen:
    """A smooth landscape: larger steps and smaller batches learn faster, more CPUs cost more than they save."""
    rate, vcpus = math.log10(float(config["learning_rate"])), float(config["vcpus"])
    error = 0.02 + 0.1 * (rate + 3.4) ** 2 + 0.03 * math.log(float(config["batch_size"]) / 16)
    error = min(0.9, error * fraction**-0.3)
    seconds = 400 * fraction * vcpus**-0.6 * (1 + 0.3 * float(config["sync_mode"]))
    return Seen(1 - error, seconds, seconds * vcpus * 0.05 / 3600)


def drawn(configs: list[Config], count: int) -> Iterator[tuple[Config, float]]:
    rng = np.random.default_rng(0)
    for row, fraction in zip(rng.integers(len(configs), size=count), rng.choice(FRACTIONS, size=count), strict=True):
        yield configs[row], float(fraction)


def ours(method: str | Method, configs: list[Config], observations: int) -> Callable[[], object]:
    """With its observations; each call is an ask and a tell. A method is a name or an object."""
    optimizer = Optimizer(
        configs,
        maximize="accuracy",
        constraints=[f"cost <= {LIMIT_USD}"],
        fractions=FRACTIONS,
        usd_per_hour=lambda config: float(config["vcpus"]) * 0.05,
        method=method,
    )

    def tell(suggestion: Suggestion) -> None:
        seen = run(suggestion.config, suggestion.fraction)
        optimizer.tell(suggestion, accuracy=seen.accuracy, seconds=seen.seconds)

    for config, fraction in drawn(configs, observations):
        tell(Suggestion(config, fraction))
    return lambda: tell(optimizer.ask())


def optuna_gp(configs: list[Config], observations: int) -> Callable[[], object]:
    """The same parameters as ranges and choices, full runs only: it has no fractions."""
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    suggested = {
        "vm_type": CategoricalDistribution(list(dict.fromkeys(config["vm_type"] for config in configs))),
        "vcpus": IntDistribution(8, 80),
        "learning_rate": FloatDistribution(1e-5, 1e-3, log=True),
        "batch_size": IntDistribution(16, 256, log=True),
        "sync_mode": IntDistribution(0, 1),
    }
    sampler = optuna.samplers.GPSampler(
        seed=0, n_startup_trials=observations, constraints_func=lambda trial: trial.user_attrs["over"]
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def turn() -> None:
        trial: Any = study.ask(suggested)
        seen = run(trial.params, 1.0)
        trial.set_user_attr("over", [seen.cost / LIMIT_USD - 1])
        study.tell(trial, seen.accuracy)

    for _ in range(observations):
        turn()
    return turn


def median_ms(turn: Callable[[], object], asks: int) -> tuple[float, float]:
    """Of the asks after the first, and of the first."""
    taken = []
    for _ in range(asks + 1):
        began = time.process_time()
        turn()
        taken.append(1000 * (time.process_time() - began))
    return statistics.median(taken[1:]), taken[0]


def botorch_eic(configs: list[Config], observations: int) -> Callable[[], object]:
    """Its constrained expected improvement at all candidates, from full runs."""
    import torch
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import SumMarginalLogLikelihood

    x = torch.tensor(of_table(configs).x)
    rows = np.random.default_rng(0).integers(len(configs), size=observations).tolist()
    limit = math.log(LIMIT_USD)

    def turn() -> None:
        seen = [run(configs[row], 1.0) for row in rows]
        accuracy = torch.tensor([[one.accuracy] for one in seen], dtype=torch.float64)
        cost = torch.tensor([[math.log(one.cost)] for one in seen], dtype=torch.float64)
        models = [SingleTaskGP(x[rows], y, outcome_transform=Standardize(m=1)) for y in (accuracy, cost)]
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        best = accuracy[cost <= limit].max()
        worth = LogConstrainedExpectedImprovement(model, best, 0, {1: (None, limit)})
        with torch.no_grad():
            rows.append(int(worth(x[:, None, :]).argmax()))

    return turn


def entropy_methods() -> Iterator[tuple[str, str | Method, str]]:
    """Rows of the paper's acquisition function, by model and filter: name, method, and remark."""
    yield "gp_cea10_ms", "trimtuner_gp", "Gaussian processes, 3 roots, CEA at 10 %; goal <= 75"
    yield "gp_nofilter_ms", TrimTunerGp(NoFilter()), "the same at all runs; goal <= 300"
    yield "dt_cea10_ms", "trimtuner_dt", "64 trees, 3 roots, CEA at 10 %; goal <= 100"
    yield "dt_nofilter_ms", TrimTunerDt(NoFilter()), "the same at all runs; goal <= 700"
    yield "dt_as_printed_ms", "trimtuner_dt_as_printed", "64 trees, 1 root, CEA at 10 %; 1.36 min in print"
    yield "gp_as_printed_ms", "trimtuner_gp_as_printed", "1 root, CEA at 10 %; 18.65 min in print"
    yield "gp_cmaes10_ms", TrimTunerGp(ByCmaes()), "CMA-ES at 10 %"
    yield "gp_direct10_ms", TrimTunerGp(ByDirect()), "DIRECT at 10 %"
    yield "fabolas_ms", "fabolas", "no limits, no filter; 13.96 min in print"


def rows_of(quick: bool) -> Iterator[Row]:
    asks = QUICK_ASKS if quick else ASKS
    paper = configurations(CONFIGURATIONS)

    def row(name: str, turn: Callable[[], object], against: str) -> Row:
        warm, cold = median_ms(turn, asks)
        return Row(name, warm, "ms", f"{against}; the first ask {cold:.0f} ms")

    told = f"n = {OBSERVATIONS}"
    places = f"{CONFIGURATIONS} configurations x {len(FRACTIONS)} sizes = 1,440 as the paper counts, {told}"
    yield row("mf_eic_ms", ours("trimtuner", paper, OBSERVATIONS), f"{places}; goal <= 25")
    for name, method, what in entropy_methods():
        yield row(name, ours(method, paper, OBSERVATIONS), f"{places}; {what}")
    yield row("eic_ms", ours("eic", paper, OBSERVATIONS), f"{CONFIGURATIONS} configurations at full size, {told}")
    if find_spec("optuna") and find_spec("torch"):
        yield row("optuna_gp_ms", optuna_gp(paper, OBSERVATIONS), f"GPSampler with a constraint, {told}")
    if find_spec("botorch"):
        yield row("botorch_eic_ms", botorch_eic(paper, OBSERVATIONS), f"LogConstrainedExpectedImprovement, {told}")
    for count in GROWTH_CANDIDATES[: 1 if quick else None]:
        name = f"mf_eic_{_count(count)}_candidates_n{OBSERVATIONS}_ms"
        yield row(name, ours("trimtuner", configurations(count), OBSERVATIONS), f"{count:,} configurations x 5 sizes")
    for observations in GROWTH_OBSERVATIONS[: 1 if quick else None]:
        name = f"mf_eic_1440_candidates_n{observations}_ms"
        yield row(name, ours("trimtuner", configurations(1_440), observations), "1,440 configurations x 5 sizes")
    if not quick:
        turn = ours("trimtuner", configurations(100_000), 500)
        yield row("mf_eic_100k_candidates_n500_ms", turn, "100,000 configurations x 5 sizes; goal <= 150")


def _count(number: int) -> str:
    return f"{number // 1000}k" if number >= 10_000 else str(number)


def main() -> None:
    args = arguments(__doc__.partition("\n\n")[0])
    one_thread()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers: experimental features, jitter added to a matrix
        publish(list(rows_of(args.quick)), args.json)


if __name__ == "__main__":
    main()
