"""A simulated study of the SpotTune benchmark, through the whole product, and its outcome; many in parallel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context

from benchmarks.spottune_contestants import Contestant
from benchmarks.spottune_market import RUN_S, Market, provider
from benchmarks.spottune_workloads import METRIC, Task
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import JobId, LeaseId, SegmentId
from shoestring.market.prices import PriceBook
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.policies.search.theta.policy import EXPECTED, RESTED
from shoestring.space.space import Int, Space
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.world import SimWorld

AMPLE_USD = 1e6
SPARE_MACHINES = 8
"""In addition to one for each trial, so that a moving trial may rent the next machine before it releases the last."""


@dataclass(frozen=True)
class Bout:
    """One study to be run."""

    market: Market
    task: str
    contestant: Contestant
    theta: float
    start: float
    seed: int


@dataclass(frozen=True)
class Outcome:
    market: str
    task: str
    contestant: str
    theta: float
    usd: float
    hours: float
    """From the start to the end of the last step: JCT."""
    free: float
    """The share of the steps that were trained on machines refunded in full."""
    revocations: int
    unfinished: bool
    """A trial that should have been trained to the end was not."""
    best_first: bool
    """Was the best trial predicted to be the best?"""
    best_kept: bool
    """Was it trained to the end, or to its plateau?"""


def spec_for(task: Task, contestant: Contestant, theta: float, seed: int, market: SimulatedProvider) -> RunSpec:
    return RunSpec(
        name="spottune",
        space=Space(params={"trial": Int(0, task.trials - 1)}),
        given=tuple({"trial": trial} for trial in range(task.trials)),
        metric=METRIC,
        trials=task.trials,
        max_steps=task.steps,
        budget_usd=AMPLE_USD,
        deadline_s=RUN_S,
        recipe=contestant.recipe,
        options={"theta": theta, **contestant.options},
        seed=seed,
        listings=market.listings,
        max_machines=task.trials + SPARE_MACHINES,
    )


def play(bout: Bout, task: Task, book: PriceBook) -> Outcome:
    only = None if bout.contestant.only is None else {bout.contestant.only(bout.market)}
    market = provider(bout.market, book, bout.seed, only, bout.contestant.kinds)
    spec = spec_for(task, bout.contestant, bout.theta, bout.seed, market)
    policies = list(recipes.build(spec))
    if bout.contestant.placement is not None:
        policies[1] = bout.contestant.placement(market, task)
    journal = MemoryJournal()
    world = SimWorld(market, task.workload(), start=bout.start)
    first = [e.RunStarted(at=bout.start, spec=spec, seed=bout.seed)]
    state = run(world, journal, policies, BudgetAndDeadline(), first=first)
    entries, best = list(journal.read()), state.jobs[JobId(f"j{task.best}")]
    return Outcome(
        market=bout.market.name,
        task=task.name,
        contestant=bout.contestant.name,
        theta=bout.theta,
        usd=state.spent_usd,
        hours=(_last_step_at(entries) - bout.start) / 3600.0,
        free=free_share(entries),
        revocations=state.revocations,
        unfinished=any(not (job.over or _rested(job)) for job in state.jobs.values()),
        best_first=_expected_best(state) == f"j{task.best}",
        best_kept=best.status == "finished" or _rested(best),
    )


def free_share(entries: Sequence[Entry]) -> float:
    """Of the steps that were not lost, those trained on machines that were free of charge."""
    began: dict[SegmentId, d.StartSegment] = {}
    trained_on: dict[JobId, list[LeaseId]] = {}
    free: set[LeaseId] = set()
    for entry in entries:
        match entry.event:
            case e.SegmentEnded(segment=segment, step=step) if segment in began:
                order = began.pop(segment)
                first = order.resume_from.step if order.resume_from else 0
                mine = trained_on.setdefault(order.job, [])
                mine[first:] = [order.leases[0]] * (step - first)
            case e.LeaseEnded(lease=lease, charged_usd=charged, refunded_usd=refunded) if refunded > 0 and not charged:
                free.add(lease)
        for order in entry.decisions:
            if isinstance(order, d.StartSegment):
                began[order.segment] = order
    leases = [lease for mine in trained_on.values() for lease in mine]
    return sum(lease in free for lease in leases) / max(1, len(leases))


def _last_step_at(entries: Sequence[Entry]) -> float:
    return max((entry.event.at for entry in entries if isinstance(entry.event, e.JobReported)), default=math.nan)


def _rested(job: Job) -> bool:
    """On a plateau the paper treats a trial as finished."""
    return job.status == "paused" and RESTED in job.tags


def _expected_best(state: RunState) -> JobId:
    """By its prediction when it settled; of a trial that was trained to the end at once, by its final value."""

    def expected(job_id: JobId) -> float:
        told = state.jobs[job_id].tags.get(EXPECTED)
        value = told if isinstance(told, float) else state.jobs[job_id].latest.get(METRIC, math.nan)
        return math.inf if math.isnan(value) else value

    return min(state.jobs, key=expected)


# -- many at once ------------------------------------------------------------------------------------------------------
def hold(
    bouts: Sequence[Bout], tasks: Mapping[str, Task], books: Mapping[str, PriceBook], processes: int
) -> list[Outcome]:
    """All outcomes, in the order asked. Processes are forked, so that prices and curves are read once."""
    _TASKS.update(tasks)
    _BOOKS.update(books)
    if processes == 1:
        return [_one(bout) for bout in bouts]
    with get_context("fork").Pool(processes) as pool:
        return pool.map(_one, bouts, chunksize=4)


_TASKS: dict[str, Task] = {}
_BOOKS: dict[str, PriceBook] = {}
"""By the name of the market; what a forked process finds."""


def _one(bout: Bout) -> Outcome:
    return play(bout, _TASKS[bout.task], _BOOKS[bout.market.name])
