"""Whole bags, run by the product: `recipe="scispot"` on machines with the lifetimes of one fold.

The product's own lifetimes are constants that were fitted on all folds: these bags are no test on unseen machines.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from benchmarks.scispot_lives import Split
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Value
from shoestring.market.catalog import catalog
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.space.space import Int, Space
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Workload
from shoestring.world.sim.world import SimWorld

MACHINES = 16
STEP_S = 60.0
START_S = 20.0


@dataclass(frozen=True)
class Outcome:
    usd: float
    on_demand_usd: float
    """What the same work would have cost on on-demand machines."""
    overhead: float
    """Repeated work, as a share of all work: what the paper calls the increase in running time."""
    done: bool


def play_bag(
    split: Split, hours: float, jobs: int, seed: int, *, saves: bool, gangs: str = "1", scaling: float = 1.0
) -> Outcome:
    """Jobs of one length on n1-highcpu-16, as many at once as there are machines. Without checkpoints and notices, a
    lost job restarts: that is how the paper runs them. With `gangs`, n machines are n^scaling times as fast as one."""
    machine = catalog.machine("gcp", "n1-highcpu-16")
    listings = tuple(
        catalog.listing(machine, "us-east1-b", spot=spot, legacy_preemptible=spot) for spot in (True, False)
    )
    if not saves:
        listings = tuple(replace(listing, notice_s=0.0) for listing in listings)
    options: dict[str, Value] = {"gangs": gangs, **({} if saves else {"checkpointing": "none"})}
    provider = SimulatedProvider.preemptible(listings, split.truth_of("n1-highcpu-16"), seed=seed, provision_s=60.0)
    steps = round(hours * HOUR_S / STEP_S)
    spec = RunSpec(
        name="bag",
        kind="bag",
        space=Space(params={"number": Int(0, jobs)}),
        given=tuple({"number": number} for number in range(jobs)),
        trials=jobs,
        max_steps=steps,
        budget_usd=1e6,
        deadline_s=30 * 86400.0,
        listings=listings,
        max_machines=MACHINES,
        recipe="scispot",
        options=options,
        seed=seed,
    )
    workload = Workload(
        curve=lambda _: lambda step: {"done": step}, seconds_per_step=lambda _, __, n: STEP_S / n**scaling
    )
    first = [RunStarted(at=provider.start, spec=spec, seed=seed)]
    world = SimWorld(provider, workload, start=provider.start)
    state = run(world, MemoryJournal(), recipes.build(spec), BudgetAndDeadline(), first=first)
    work_s = jobs * hours * HOUR_S
    return Outcome(
        state.spent_usd,
        (work_s + jobs * START_S) / HOUR_S * machine.on_demand_usd_per_hour,
        state.lost_s / work_s,
        all(job.status == "finished" for job in state.jobs.values()),
    )
