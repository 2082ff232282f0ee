"""Data fractions on real processes, under the real controller, on a machine that is preempted."""

import math
import time
from contextlib import closing

from shoestring.backends.local.place import LocalPlace
from shoestring.backends.site import Site
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.spec import Code
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing import user_code
from shoestring.worker.subsampling import subsample
from shoestring.world.live.clock import RunClock
from shoestring.world.live.world import LiveWorld
from tests import fractions as parts
from tests.world.runs import spec
from tests.world.scenes import SPOT, listing, market

FRACTIONS = (0.1, 0.5, 1.0)
SEED = 7
SPEEDUP, STEPS, STEP_S = 100.0, 18, 0.1


class FirstIsRevoked:
    """Before its trials can finish, however fast they start; later machines are never revoked."""

    def revoked_at(self, lease, _offer, granted_at, _maximum, /):
        return granted_at + SPEEDUP * STEPS * STEP_S if lease == "l0" else math.inf


def loss_on(fraction: float) -> float:
    """What `user_code.sampled` reports on a fraction."""
    return float(sum(index**2 for index in subsample(100, fraction, SEED).tolist()))


def test_trials_on_data_fractions_keep_their_samples_through_a_revocation(tmp_path):
    provider = market(FirstIsRevoked(), listings=[listing(SPOT, notice_s=40.0, slots=3)])
    described = spec(
        listings=provider.listings,
        code=Code(function=f"{user_code.__file__}:sampled"),
        fractions=FRACTIONS,
        max_steps=STEPS,
        seed=SEED,
    )
    clock = RunClock(started_at=0.0, wall_at=time.time(), speedup=SPEEDUP)
    store = DirectoryStore(tmp_path / "checkpoints")
    site = Site(run_dir=tmp_path, code=described.code, folder=tmp_path, store=store, clock=clock, metric="loss")
    backend = LocalPlace().open(None, site, provider)
    journal, first = MemoryJournal(), e.RunStarted(at=0.0, spec=described, seed=described.seed)
    with closing(LiveWorld(backend, clock, provider.feed, store)) as world:
        state = run(world, journal, parts.policies(step_s=STEP_S), BudgetAndDeadline(), first=[first])

    assert [job.status for job in state.jobs.values()] == ["finished"] * 3
    assert [job.revocations for job in state.jobs.values()] == [1] * 3
    for job in state.jobs.values():
        assert set(job.values) == {loss_on(job.fraction)}
        smaller = [part for part in FRACTIONS if part < job.fraction]
        assert {part: seen.metrics["loss"] for part, seen in job.snapshots.items()} == {x: loss_on(x) for x in smaller}

    reported: dict[str, set[float]] = {}
    for entry in journal.read():
        if isinstance(entry.event, e.SnapshotReported):
            reported.setdefault(entry.event.job, set()).add(entry.event.fraction)
        for order in entry.decisions:
            if isinstance(order, d.StartSegment):
                assert not reported.get(order.job, set()) & set(order.fractions), "requested what it had reported"
