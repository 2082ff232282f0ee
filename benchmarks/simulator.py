"""How many events a second the simulator handles, against a bare heap that only pushes and pops.

The study: random search on a busy cluster of spot machines, 50 reports a trial, with preemptions, journal in memory;
and again with 10 reports a trial, where starting and ending trials costs more.
The bare heap takes as many tuples as the study has events, all pushed before the first is popped, as a simulator would
that schedules everything up front; a second row compares with a heap that stays as small as the simulated world's own.
"""

from __future__ import annotations

import heapq
import random
import statistics
import time

from benchmarks.rows import Row, arguments, cpu_s, median_ratio, publish
from shoestring import recipes
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.spec import RunSpec
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.synthetic_prices import DEFAULT_START
from shoestring.space.space import from_plain
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import SublinearSpeed, Workload
from shoestring.world.sim.world import SimWorld

STEPS = 50
FEW_STEPS = 10


def simulate(
    provider: SimulatedProvider, trials: int, machines: int, steps: int = STEPS, placement: str = "cheapest"
) -> int:
    """One study; returns how many events it took. The simulator is measured, so its policies are the simplest."""
    spec = RunSpec(
        name="bench",
        space=from_plain({"lr": {"log": [1e-4, 1.0]}, "width": [32, 64, 128]}),
        metric="loss",
        trials=trials,
        max_steps=steps,
        budget_usd=1e6,
        deadline_s=20 * 86400.0,
        recipe="random",
        options={"placement": placement},
        listings=provider.listings,
        max_machines=machines,
        slice_s=3600.0,
    )
    workload = Workload(
        curve=lambda config: lambda step: {"loss": float(config["lr"] or 0) + 1 / step},
        seconds_per_step=SublinearSpeed(30.0),
    )
    journal = MemoryJournal()
    state = run(
        SimWorld(provider, workload, start=DEFAULT_START),
        journal,
        recipes.build(spec),
        BudgetAndDeadline(),
        first=[RunStarted(at=DEFAULT_START, spec=spec, seed=0)],
    )
    if state.by_status["finished"] != trials:
        raise SystemExit(f"only {state.by_status['finished']} of {trials} simulated trials finished")
    return state.seq


def bare_heap_s(events: int) -> float:
    """CPU seconds to push as many (time, number, subject) tuples as the study has events, and to pop them again."""
    rng = random.Random(0)
    tuples = [(rng.random() * 1e6, number, None) for number in range(events)]

    def work() -> None:
        heap: list[tuple[float, int, None]] = []
        push, pop = heapq.heappush, heapq.heappop
        for item in tuples:
            push(heap, item)
        for _ in tuples:
            pop(heap)

    return cpu_s(work)


def small_heap_s(events: int, held: int) -> float:
    """The same on a heap that never holds more than the simulated world does: each pop followed by a push."""
    rng = random.Random(0)
    later = [rng.random() * 600 for _ in range(events)]
    heap = [(rng.random() * 600, number, None) for number in range(held)]
    heapq.heapify(heap)

    def work() -> None:
        push, pop = heapq.heappush, heapq.heappop
        for number, delay in enumerate(later):
            at, _, subject = pop(heap)
            push(heap, (at + delay, number, subject))

    return cpu_s(work)


def main() -> None:
    args = arguments(__doc__ or "")
    trials, machines, repeats = (200, 50, 3) if args.quick else (4000, 200, 7)
    provider = SimulatedProvider.modern(seed=1, interruptions_per_hour=0.05)
    events = simulate(provider, trials, machines)  # also warms up
    ours, bare, ratio = median_ratio(
        lambda: cpu_s(lambda: simulate(provider, trials, machines)), lambda: bare_heap_s(events), repeats
    )
    events_few = simulate(provider, trials, machines, FEW_STEPS)
    few, _, few_ratio = median_ratio(
        lambda: cpu_s(lambda: simulate(provider, trials, machines, FEW_STEPS)), lambda: bare_heap_s(events_few), repeats
    )
    events_slack = simulate(provider, trials, machines, placement="slack")
    slack = cpu_s(lambda: simulate(provider, trials, machines, placement="slack"))
    small = statistics.median(small_heap_s(events, 3 * machines) for _ in range(repeats))
    what = f"{trials} trials x {STEPS} reports on {machines} machines, {events} events"
    publish(
        [
            Row("events_per_s", events / ours, "1/s", what),
            Row("bare_heapq_per_s", events / bare, "1/s", "all tuples pushed, then all popped"),
            Row("events_vs_heapq", 1 / ratio, "ratio", f"median of {repeats} pairs, CPU time; goal >= 0.26"),
            Row(
                "events_per_s_10_reports", events_few / few, "1/s", f"{FEW_STEPS} reports a trial, {events_few} events"
            ),
            Row("events_vs_heapq_10_reports", 1 / few_ratio, "ratio", "the same comparison"),
            Row(
                "events_per_s_slack", events_slack / slack, "1/s", "with the default placement instead of the simplest"
            ),
            Row("events_vs_small_heapq", small / ours, "ratio", f"a heap of {3 * machines}, as small as ours"),
        ],
        args.json,
    )


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"({time.monotonic() - began:.0f} s)")
