"""How fast offers are compared by the expected cost of a useful step, vectorized; and whole forecasts of a large study,
in which every machine is chosen among sixty spot markets and their on-demand counterparts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, cpu_s, parser, publish
from shoestring import recipes
from shoestring.kernel.spec import RunSpec
from shoestring.market.catalog import catalog
from shoestring.models.step_cost import usd_per_useful_step
from shoestring.runs.forecast import SimulationOutcome, forecast
from shoestring.runs.sim_workload import guessed
from shoestring.space.space import from_plain
from shoestring.specs.market import Machines, Market
from shoestring.specs.request import RunRequest

MARKETS, REPEATS, ALONE = 60, 5, 1000
ZONES, DAYS, MACHINES, FULL = 3, 12.0, 100, 10_000
STEPS, STEP_S = 20, 240.0
"""Of a trial on four cores: ten thousand of them keep a hundred machines busy for most of twelve days."""
INTERRUPTIONS_PER_HOUR = 0.05
"""Every preemption requires another choice among all offers."""
FORECASTS = {
    "forecast_60_markets_10k_trials_s": ("random", "cheapest_step"),
    "forecast_60_markets_10k_trials_cheapest_s": ("random", "cheapest"),
    "forecast_60_markets_10k_trials_asha_s": ("asha", "cheapest_step"),
    "forecast_60_markets_10k_trials_spottune_s": ("spottune", "cheapest_step"),
}


def main() -> None:
    asked = parser(__doc__ or "")
    asked.add_argument("--no-forecasts", action="store_true", help="only compare offers: seconds instead of minutes")
    args = asked.parse_args()
    rows = list(comparing(*(200, 20) if args.quick else (1000, 50)))
    if not args.no_forecasts:
        rows += forecasting(500 if args.quick else FULL)
    publish(rows, args.json)


def comparing(moments: int, trials: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    step_s = rng.uniform(1.0, 300.0, size=(MARKETS, 1, trials))
    chance = rng.random((MARKETS, moments, 1)) ** 4
    usd_per_hour = rng.uniform(0.02, 3.0, size=(MARKETS, moments, 1))
    steps_left = rng.integers(1, 500, size=trials)
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        for moment in range(0, moments, 10):  # as a placement asks: a few moments at a time, so that it stays in cache
            some = slice(moment, moment + 10)
            price = usd_per_useful_step(
                step_s, steps_left, chance[:, some], usd_per_hour[:, some], refund_within_s=3600.0
            )
            price.argmin(axis=0)
        seconds.append(time.process_time() - began)
    evaluations = MARKETS * moments * trials
    began = time.process_time()
    for k in range(ALONE):
        usd_per_useful_step(10.0, 100, chance[k % MARKETS, 0, 0], 0.5, refund_within_s=3600.0)
    one_by_one = ALONE / (time.process_time() - began)
    rate = evaluations / statistics.median(seconds)
    yield Row("market_evaluations_per_s", rate, "1/s", f"{evaluations} of them, one core, CPU time; goal 1e6")
    yield Row("vectorised_vs_one_by_one", rate / one_by_one, "ratio", f"{one_by_one:.0f} a second asked one by one")


def forecasting(trials: int) -> Iterator[Row]:
    """One simulation each; `shoestring plan` makes twenty."""
    for name, (recipe, placement) in FORECASTS.items():
        seconds, came_to = _one_simulation(_study(trials, recipe, placement))
        yield Row(
            name if trials == FULL else name.replace("10k", str(trials)),
            seconds,
            "s",
            f"{seconds / 60:.1f} min, CPU time, {recipe} with {placement}: {came_to.trials} trials, "
            f"{came_to.seconds / 86400:.1f} of {DAYS:g} days, {came_to.revoked} machines taken away",
        )


def _one_simulation(asked: RunRequest) -> tuple[float, SimulationOutcome]:
    workload = guessed(asked.spec, seconds_per_step=STEP_S)
    found: list[SimulationOutcome] = []
    seconds = cpu_s(lambda: found.extend(forecast(asked, workload, 1, lambda _: None)[0].outcomes))
    return seconds, found[0]


def _study(trials: int, recipe: str, placement: str) -> RunRequest:
    wide = [machine for machine in catalog.machines("aws", gpus=0) if len(machine.zones) >= ZONES]
    names = tuple(machine.name for machine in wide[: MARKETS // ZONES])
    knobs = {"interruptions_per_hour": INTERRUPTIONS_PER_HOUR}
    market = Market(kind="modern", machines=Machines(provider="aws", names=names), slots=1, knobs=knobs)
    provider = market.open(DAYS * 86400.0)
    if sum(listing.offer.spot for listing in provider.listings) != MARKETS:
        raise SystemExit(f"the catalogue has {len(provider.listings)} offers, and {MARKETS} spot markets are needed")
    spec = RunSpec(
        name="large",
        space=from_plain({"lr": {"log": [1e-4, 1.0]}, "width": [32, 64, 128]}),
        metric="loss",
        trials=trials,
        max_steps=STEPS,
        budget_usd=1e6,
        deadline_s=DAYS * 86400.0,
        recipe=recipe,
        options={"placement": placement},
        listings=provider.listings,
        max_machines=MACHINES,
        slice_s=3600.0,
    )
    return RunRequest(spec, tuple(recipes.build(spec)), market, provider, "local", None, Path.cwd(), None, False, {})


if __name__ == "__main__":
    main()
