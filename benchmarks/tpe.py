"""Our Parzen estimator against Optuna's TPESampler and random search: regret, and CPU time of a suggestion.

Trials are sequential, each trained to its end: only the samplers differ. The first ten trials are random for all.
Regret is 0 at the optimum and 1 at what the best quarter of random configurations reach; a ratio is that of mean
regrets, over the tasks as a geometric mean. Recorded tables are left out where they are not available.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.datasets import add_held_out_option, announce, held_out
from benchmarks.rows import Row, parser, publish
from benchmarks.tables import load, reporting
from shoestring.errors import DataError
from shoestring.policies.search.samplers.parzen import Row as Place
from shoestring.policies.search.samplers.tpe import as_row, evenly, good_count, suggest
from shoestring.space.space import Space, choice, integer, log, uniform
from shoestring.values import Config

STARTUP, GAMMA, CANDIDATES, MOST_OTHERS = 10, 0.15, 24, 100


@dataclass(frozen=True)
class Task:
    name: str
    space: Space
    make: Callable[[], Callable[[Config], float]]
    """A function to be minimized, its regret; new for every run, because a table remembers which configurations are
    taken."""


Sampler = Callable[[Space, int], Iterator[tuple[Config, Callable[[float], None]]]]
"""(space, seed) -> endless configurations, each with a callback for its result."""


# -- samplers ----------------------------------------------------------------------------------------------------------
def ours(space: Space, seed: int) -> Iterator[tuple[Config, Callable[[float], None]]]:
    seen: list[tuple[float, int, Place]] = []
    for number in range(10**9):
        rng = random.Random(f"{seed}/{number}")
        if number < STARTUP:
            config = space.sample(rng)
        else:
            seen.sort()
            best = good_count(len(seen), GAMMA)
            good = [row for _, _, row in seen[:best]]
            others = [row for _, _, row in evenly(seen, MOST_OTHERS, after=best)]
            config = suggest(space, good, others, rng, candidates=CANDIDATES)

        def tell(value: float, config: Config = config, number: int = number) -> None:
            seen.append((value, number, as_row(space, config)))

        yield config, tell


def optunas(space: Space, seed: int) -> Iterator[tuple[Config, Callable[[float], None]]]:
    import optuna

    from shoestring.policies.search.samplers.optuna import suggested

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP))
    for number in range(10**9):
        if number < STARTUP:  # the same first ten for both
            study.enqueue_trial(space.sample(random.Random(f"{seed}/{number}")))
        trial = study.ask()
        config = suggested(trial, space)

        def tell(value: float, trial: optuna.Trial = trial) -> None:
            study.tell(trial, value)

        yield config, tell


def by_chance(space: Space, seed: int) -> Iterator[tuple[Config, Callable[[float], None]]]:
    for number in range(10**9):
        yield space.sample(random.Random(f"{seed}/{number}")), lambda value: None  # noqa: ARG005


# -- tasks -------------------------------------------------------------------------------------------------------------
def synthetic() -> list[Task]:
    box = Space(params={f"x{index}": uniform(-5.0, 10.0) for index in range(4)})
    mixed = Space(
        params={
            "kind": choice("sgd", "adam", "rms"),
            "lr": log(1e-6, 1.0),
            "momentum": uniform(0.5, 0.99, when={"kind": "sgd"}),
            "batch": integer(8, 512, log=True),
            "layers": integer(1, 6),
        }
    )
    return [_scaled("bowl", box, _bowl), _scaled("rosenbrock", box, _rosenbrock), _scaled("mixed", mixed, _mixed)]


def _bowl(config: Config) -> float:
    return sum((float(value or 0) - 3.0) ** 2 for value in config.values())


def _rosenbrock(config: Config) -> float:
    x = [float(value or 0) for value in config.values()]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))


def _mixed(config: Config) -> float:
    """Best with sgd, momentum 0.9, lr 1e-3, batch 32 and 3 layers."""
    kind = abs(float(config["momentum"] or 0) - 0.9) if config["kind"] == "sgd" else 0.5
    away = 0.2 * (math.log10(float(config["lr"] or 1)) + 3) ** 2 + 0.1 * abs(math.log2(float(config["batch"] or 1)) - 5)
    return kind + away + 0.1 * abs(float(config["layers"] or 0) - 3)


def _scaled(name: str, space: Space, function: Callable[[Config], float]) -> Task:
    rng = random.Random(name)
    reference = sorted(function(space.sample(rng)) for _ in range(2000))[500]
    return Task(name, space, lambda: lambda config: function(config) / reference)


def recorded() -> list[Task]:
    names = reporting("taskset", "lcbench")[::2] if held_out() is None else reporting()
    try:
        tasks = load(names)
    except DataError as error:
        print(f"without the recorded tables: {error} ({error.hint})")
        return []

    def task(name: str) -> Task:
        table = tasks[name]

        def make() -> Callable[[Config], float]:
            curve = table.workload().curve
            return lambda config: table.regret(curve(config)(table.max_steps)[table.metric])

        return Task(name, table.space, make)

    announce("curves", names)
    return [task(name) for name in names]


# -- measuring ---------------------------------------------------------------------------------------------------------
def run(sampler: Sampler, task: Task, seed: int, trials: int) -> tuple[float, float]:
    """The least regret of a study, and the CPU seconds of ask and tell after the random trials."""
    function, best, cpu_s = task.make(), math.inf, 0.0
    draws = sampler(task.space, seed)
    for number in range(trials):
        began = time.process_time()
        config, tell = next(draws)
        drawn = time.process_time()
        value = min(function(config), 1e6)
        told = time.process_time()
        tell(value)
        if number >= STARTUP:
            cpu_s += drawn - began + time.process_time() - told
        best = min(best, value)
    return best, cpu_s / (trials - STARTUP)


def compare(tasks: list[Task], seeds: int, trials: int) -> list[Row]:
    regrets: dict[str, dict[str, float]] = {"ours": {}, "optuna": {}, "chance": {}}
    costs: dict[str, list[float]] = {"ours": [], "optuna": [], "chance": []}
    samplers: dict[str, Sampler] = {"ours": ours, "optuna": optunas, "chance": by_chance}
    for task in tasks:
        for name, sampler in samplers.items():
            results = [run(sampler, task, seed, trials) for seed in range(seeds)]
            regrets[name][task.name] = statistics.fmean(regret for regret, _ in results)
            costs[name] += [cpu_s for _, cpu_s in results]
    how = f"{trials} trials, {seeds} seeds"
    rows = []
    for part in ("all", "recorded", "synthetic"):
        some = [task.name for task in tasks if part == "all" or ("/" in task.name) == (part == "recorded")]
        if some:
            name = "" if part == "all" else f"_{part}"
            rows.append(Row(f"regret_ratio_tpe_vs_optuna{name}", _ratio(regrets, "optuna", some), "ratio", how))
            rows.append(Row(f"regret_ratio_tpe_vs_random{name}", _ratio(regrets, "chance", some), "ratio", how))
    mine, theirs = (1e3 * statistics.median(costs[name]) for name in ("ours", "optuna"))
    rows += [
        Row("tpe_cpu_per_suggestion", mine, "ms", f"median over studies of {trials} trials"),
        Row("tpe_cpu_vs_optuna", mine / theirs, "ratio", f"Optuna's: {theirs:.1f} ms, its study in memory"),
    ]
    return rows + [
        Row(f"regret_{task.name}", regrets["ours"][task.name], "regret", _others(regrets, task.name)) for task in tasks
    ]


def _ratio(regrets: dict[str, dict[str, float]], than: str, tasks: list[str]) -> float:
    logs = [math.log(max(regrets["ours"][task], 1e-9) / max(regrets[than][task], 1e-9)) for task in tasks]
    return math.exp(statistics.fmean(logs))


def _others(regrets: dict[str, dict[str, float]], task: str) -> str:
    return f"Optuna's {regrets['optuna'][task]:.3g}, chance {regrets['chance'][task]:.3g}"


def main() -> None:
    options = parser(__doc__ or "")
    add_held_out_option(options)
    args = options.parse_args()
    tasks = synthetic() + recorded()
    publish(compare(tasks, 3, 40) if args.quick else compare(tasks, 20, 100), args.json)


if __name__ == "__main__":
    main()
