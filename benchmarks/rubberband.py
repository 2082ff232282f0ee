"""A fixed elimination schedule at the least cost before a deadline, against the best cluster of fixed size.

Simulated: 64 trials halved by three to one of 81 steps, machines of four slots at a GPU machine's price, provisioned in
40 s. Trials differ in speed; the planner's initial guess is right in some cells and wrong in others. The best fixed
size is found in hindsight: every size is run in the same simulator, with the best width for each stage, and the
cheapest that met the deadline counts. If none did, there is no comparison.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import msgspec

from benchmarks.rows import Row, arguments, publish
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Config, Listing, Offer
from shoestring.market.prices import PriceBook
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import Never
from shoestring.market.simulated.synthetic_prices import DEFAULT_START
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.placement.renting.release_by_plan import AsPlanned
from shoestring.policies.search.rubberband.greedy import cheapest, fastest, of_one_size
from shoestring.policies.search.rubberband.plan import CostModel, Round, RubberbandPlan, Schedule, forecast, menu
from shoestring.policies.search.rubberband.policy import Rubberband
from shoestring.policies.search.rubberband.speed import Guess
from shoestring.recipes.rubberband import plan_of
from shoestring.space.space import from_plain
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Workload
from shoestring.world.sim.world import SimWorld

MACHINE = Listing(
    offer=Offer(provider="aws", zone="us-east-1a", machine="p3.8xlarge", spot=False),
    vcpus=32,
    memory_gb=244,
    gpus=4,
    slots=4,
    on_demand_usd_per_hour=12.24,
)
MOST_MACHINES = 16
TOLD_STEP_S = 60.0
TOLD_POWER = 0.8
SLACK = (1.15, 1.5, 2.0, 3.0, 5.0)
"""Deadlines, as multiples of the shortest plan with the true speeds."""


@dataclass(frozen=True)
class Truth:
    """How fast trials really are."""

    step_s: float = TOLD_STEP_S
    power: float = TOLD_POWER
    spread: float = 0.1

    @property
    def told_right(self) -> bool:
        return (self.step_s, self.power) == (TOLD_STEP_S, TOLD_POWER)


TRUTHS = (Truth(), Truth(spread=0.3), Truth(power=0.6), Truth(step_s=80.0), Truth(step_s=45.0, power=0.9))


@dataclass(frozen=True)
class Outcome:
    usd: float
    in_time: bool


def spec_for(deadline_s: float, seed: int, machines: int = MOST_MACHINES) -> RunSpec:
    return RunSpec(
        name="rubberband",
        space=from_plain({"x": {"float": [0, 1]}}),
        metric="loss",
        trials=64,
        max_steps=81,
        budget_usd=1000.0,
        deadline_s=deadline_s,
        wind_down_s=min(120.0, deadline_s / 20),
        recipe="rubberband",
        options={"step_s": TOLD_STEP_S, "scaling": TOLD_POWER},
        listings=(MACHINE,),
        max_machines=machines,
        seed=seed,
    )


def simulate(spec: RunSpec, policies: Sequence[Policy], truth: Truth) -> Outcome:
    def seconds(config: Config, _: Listing, slots: int) -> float:
        own = math.exp(random.Random(f"{spec.seed}/{config['x']}").gauss(0.0, truth.spread))
        return truth.step_s * own / slots**truth.power

    provider = SimulatedProvider(spec.listings, PriceBook({}, spec.listings), Never(), seed=spec.seed)
    workload = Workload(
        curve=lambda config: lambda step: {"loss": float(config["x"] or 0.0) + 1 / step}, seconds_per_step=seconds
    )
    state: RunState = run(
        SimWorld(provider, workload, start=DEFAULT_START),
        MemoryJournal(),
        policies,
        BudgetAndDeadline(),
        first=[RunStarted(at=DEFAULT_START, spec=spec, seed=spec.seed)],
    )
    return Outcome(state.spent_usd, in_time=state.by_status["finished"] > 0)


def elastic(deadline_s: float, seed: int, truth: Truth) -> Outcome:
    spec = spec_for(deadline_s, seed)
    return simulate(spec, recipes.build(spec), truth)


def best_fixed(deadline_s: float, seed: int, truth: Truth) -> Outcome | None:
    found = []
    for machines in range(1, MOST_MACHINES + 1):
        spec = spec_for(deadline_s, seed, machines)
        found.append(simulate(spec, _fixed(spec, machines), truth))
    return min((outcome for outcome in found if outcome.in_time), key=lambda outcome: outcome.usd, default=None)


def _fixed(spec: RunSpec, machines: int) -> list[Policy]:
    """The same policies, but with one cluster size, and no machine released before the end."""

    def planner(schedule: Schedule, cost_model: CostModel, _left_s: float, _in_hand: int) -> RubberbandPlan:
        return of_one_size(schedule, cost_model, machines)

    policies: list[Policy] = []
    for policy in recipes.build(msgspec.structs.replace(spec, listings=())):
        match policy:
            case Rubberband():
                policies.append(replace(policy, planner=planner))
            case OnDemand():
                policies.append(replace(policy, idle_s=spec.deadline_s))
            case AsPlanned():
                pass
            case _:
                policies.append(policy)
    return policies


def shortest_s(truth: Truth) -> float:
    spec = spec_for(86400.0, 0)
    search = next(policy for policy in recipes.build(spec) if isinstance(policy, Rubberband))
    cost_model = replace(
        search.outlook.at_start(spec),
        step_s=truth.step_s,
        speedup=lambda slots: slots**truth.power,
        spread=truth.spread,
    )
    return fastest(search.schedule, cost_model).latest_s / (1 - search.outlook.margin) / 0.95


def against_fixed_clusters(truths: Sequence[Truth], seeds: int) -> list[Row]:
    ratios: dict[float, list[float]] = {slack: [] for slack in SLACK}
    errors: dict[bool, list[float]] = {True: [], False: []}
    misses = runs = only_ours = 0
    least_s = 1.05 * shortest_s(Truth(spread=Guess.spread))  # what seems impossible is refused at the start
    for truth, slack, seed in product(truths, SLACK, range(seeds)):
        deadline_s = max(slack * shortest_s(truth), least_s)
        ours, theirs = elastic(deadline_s, seed, truth), best_fixed(deadline_s, seed, truth)
        runs += 1
        misses += not ours.in_time
        errors[truth.told_right].append(abs(plan_of(spec_for(deadline_s, seed)).usd / ours.usd - 1))
        if theirs is None:
            only_ours += ours.in_time
        elif ours.in_time:
            ratios[slack].append(ours.usd / theirs.usd)
    every = [ratio for some in ratios.values() for ratio in some]
    rows = [
        Row("cost_vs_best_fixed_cluster", _mean(every), "ratio", f"{len(every)} runs; the best size in hindsight"),
        Row("worst_cost_vs_best_fixed_cluster", max(every), "ratio", "the run in which it compares worst"),
    ]
    rows += [
        Row(f"cost_vs_best_fixed_cluster_at_{slack:g}x", _mean(some), "ratio", f"{slack:g} times the shortest plan")
        for slack, some in ratios.items()
        if some
    ]
    rows += [
        Row("deadline_misses", misses, "runs", f"of {runs}"),
        Row("no_fixed_cluster_in_time", only_ours, "runs", "ours was, and no cluster of one size"),
        Row("forecast_error", statistics.median(errors[True]), "ratio", "dollars planned at the start, told right"),
    ]
    if errors[False]:
        wrong = statistics.median(errors[False])
        rows.append(Row("forecast_error_told_wrong", wrong, "ratio", "the same, with a wrong guess of speed"))
    return rows


def against_brute_force(instances: int) -> list[Row]:
    excess, took_s = [], []
    for seed in range(instances):
        schedule, cost_model = _small(random.Random(seed))
        every = [forecast(schedule, chosen, cost_model) for chosen in product(*menu(schedule, cost_model))]
        deadline_s = min(plan.latest_s for plan in every) * random.Random(seed).uniform(1.0, 3.0)
        began = time.process_time()
        found = cheapest(schedule, cost_model, deadline_s)
        took_s.append(time.process_time() - began)
        best = min(plan.usd for plan in every if plan.latest_s <= deadline_s)
        excess.append(math.inf if found is None else found.usd / best)
    large = next(policy for policy in recipes.build(spec_for(2700.0, 0)) if isinstance(policy, Rubberband))
    began = time.process_time()
    cheapest(large.schedule, large.outlook.at_start(spec_for(2700.0, 0)), 2400.0)
    return [
        Row(
            "greedy_vs_brute_force", statistics.fmean(excess), "ratio", f"dollars, mean of {instances} small instances"
        ),
        Row("worst_greedy_vs_brute_force", max(excess), "ratio", "the same, the worst"),
        Row("plan_cpu", 1e3 * (time.process_time() - began), "ms", "five stages on up to 16 machines"),
    ]


def _small(rng: random.Random) -> tuple[Schedule, CostModel]:
    trials, steps, eta, rounds, reached = rng.choice((8, 16, 27)), rng.randint(1, 3), rng.choice((2, 3, 4)), [], 0
    for _ in range(rng.randint(2, 4)):
        reached += steps
        rounds.append(Round(trials=trials, steps=steps, until_step=reached))
        trials, steps = max(1, trials // eta), steps * eta
    power = rng.uniform(0.5, 1.0)
    cost_model = CostModel(
        slots=rng.choice((1, 2, 4)),
        usd_per_hour=3.0,
        billing=rng.choice(("per_second", "per_second", "per_hour")),
        max_machines=rng.choice((4, 6, 8)),
        step_s=rng.uniform(10.0, 200.0),
        speedup=lambda slots: slots**power,
        spread=rng.choice((0.0, 0.1, 0.2)),
    )
    return tuple(rounds), cost_model


def _mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def main() -> None:
    args = arguments(__doc__ or "")
    rows = against_fixed_clusters(TRUTHS[:2], 1) if args.quick else against_fixed_clusters(TRUTHS, 3)
    rows += against_brute_force(20 if args.quick else 200)
    publish(rows, args.json)


if __name__ == "__main__":
    main()
