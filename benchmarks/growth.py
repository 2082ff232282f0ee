"""One large inline study; prints the CPU per event of its last tenth over that of its first, and the peak memory in MB.

Called by `benchmarks.overhead` with the number of trials and the recipe, in a process of its own so that the memory is
the study's alone.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from shoestring import recipes
from shoestring.backends.inline.place import InlinePlace
from shoestring.backends.site import Site
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.kernel.history import Entry
from shoestring.kernel.spec import Code, RunSpec
from shoestring.kernel.state import RunState
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.space.space import from_plain
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.trial import Trial
from shoestring.world.live.clock import RunClock
from shoestring.world.live.world import LiveWorld

EVERY = 500
"""Events between two readings of the CPU clock."""


def train(trial: Trial) -> None:
    x = float(trial["x"])
    for step in trial.steps():
        trial.report(loss=x * x + 1 / step)


def main(trials: int, recipe: str) -> None:
    provider = SimulatedProvider.free(slots=1)
    spec = RunSpec(
        name="growth",
        space=from_plain({"x": {"float": [-1, 1]}}),
        metric="loss",
        trials=trials,
        max_steps=10,
        recipe=recipe,
        listings=provider.listings,
    )
    looks: list[float] = []

    def watch(state: RunState, _: Entry) -> None:
        if state.seq % EVERY == 0:
            looks.append(time.process_time())

    with tempfile.TemporaryDirectory() as folder:
        now = time.time()
        clock = RunClock(now, now, speedup=1.0)
        store = DirectoryStore(Path(folder) / "checkpoints")
        here = Path(folder)
        site = Site(run_dir=here, code=Code(), folder=here, store=store, clock=clock, metric="loss", function=train)
        backend = InlinePlace().open(None, site, provider)
        with closing(SqliteJournal.open(Path(folder) / "journal.sqlite", survives_power_loss=False)) as journal:
            state = run(
                LiveWorld(backend, clock, provider.feed, store),
                journal,
                recipes.build(spec),
                BudgetAndDeadline(),
                first=[RunStarted(at=now, spec=spec, seed=0, wall_at=now)],
                watcher=watch,
            )
    if len(state.jobs) != trials:
        raise SystemExit(f"only {len(state.jobs)} of {trials} trials were run")
    tenth = len(looks) // 10

    def per_event(part: list[float]) -> float:
        """The median interval of the part: a noisy moment of the machine is not growth."""
        return statistics.median(later - earlier for earlier, later in pairwise(part))

    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(per_event(looks[-tenth:]) / per_event(looks[:tenth]), peak_mb, state.seq)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
