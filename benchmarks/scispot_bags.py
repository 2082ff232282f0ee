"""Whole bags, run by the product: `recipe="scispot"` on machines with the lifetimes of one fold.

The model comes from the other folds, in a file, as a user would give it (`lifetimes: FILE`): no machine of a bag was
seen by the model that it is run with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import UNSET
from msgspec.structs import replace

from benchmarks.scispot_lives import Split
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Listing, Value
from shoestring.market.catalog import catalog
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.models.lifetimes.saved import encoded
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
    state = played(
        split,
        listings,
        jobs,
        seed,
        max_steps=round(hours * HOUR_S / STEP_S),
        max_machines=MACHINES,
        options=options,
        workload=Workload(
            curve=lambda _: lambda step: {"done": step}, seconds_per_step=lambda _, __, n: STEP_S / n**scaling
        ),
        machine="n1-highcpu-16",
    )
    work_s = jobs * hours * HOUR_S
    return Outcome(
        state.spent_usd,
        (work_s + jobs * START_S) / HOUR_S * machine.on_demand_usd_per_hour,
        state.lost_s / work_s,
        is_done(state),
    )


def played(
    split: Split,
    listings: Sequence[Listing],
    jobs: int,
    seed: int,
    *,
    max_steps: int,
    max_machines: int,
    options: Mapping[str, Value],
    workload: Workload,
    machine: str | None = None,
) -> RunState:
    """A bag to its end, on held-out lifetimes: those of one machine type, or of all."""
    provider = SimulatedProvider.preemptible(listings, split.truth_of(machine), seed=seed, provision_s=60.0)
    with TemporaryDirectory() as folder:
        model = Path(folder) / "lifetimes.json"
        model.write_bytes(encoded(split.saved))
        spec = RunSpec(
            name="bag",
            kind="bag",
            space=Space(params={"number": Int(0, jobs)}),
            given=tuple({"number": number} for number in range(jobs)),
            trials=jobs,
            max_steps=max_steps,
            open_ended=True if max_steps == 1 else UNSET,
            budget_usd=1e6,
            deadline_s=365 * 86400.0,
            listings=tuple(listings),
            max_machines=max_machines,
            recipe="scispot",
            options={"lifetimes": str(model), **options},
            seed=seed,
        )
        policies = recipes.build(spec)
    world = SimWorld(provider, workload, start=provider.start)
    first = [RunStarted(at=provider.start, spec=spec, seed=seed)]
    return run(world, MemoryJournal(), policies, BudgetAndDeadline(), first=first)


def is_done(state: RunState) -> bool:
    return all(job.status == "finished" for job in state.jobs.values())
