"""Gangs in whole studies on the local backend: real processes, whose number changes during training."""

import time
from dataclasses import dataclass
from typing import ClassVar

import pytest

from shoestring.backends.local.place import LocalPlace
from shoestring.backends.site import Site
from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.spec import Code, RunSpec
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.recipes import build
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing import user_code
from shoestring.worker.task import Task, read_json
from shoestring.world.live.clock import RunClock
from shoestring.world.live.world import LiveWorld
from tests.backends.backends_at_work import processes_of

STEPS = 40


@dataclass(frozen=True)
class Resized:
    """One trial, with the given number of slots from each of the given steps on."""

    widths: tuple[tuple[int, int], ...]
    wants: ClassVar = frozenset({e.RunStarted, e.JobReported})

    def decide(self, state, event):
        if isinstance(event, e.RunStarted):
            yield d.AddJob(job=state.next_job(), config={"step_s": 0.03}, why="a test")
            yield self._run("j0", 0)
        elif event.step in dict(self.widths):
            yield self._run(event.job, event.step)

    def _run(self, job, step):
        return d.RunJob(job=job, until_step=STEPS, slots=dict(self.widths)[step], why="a test")


@pytest.fixture
def study(tmp_path):
    """A real study of one trial, on machines with `machine_slots` slots."""

    def study(*widths, machine_slots, worker_slots=1):
        run_dir = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        provider = SimulatedProvider.free(machine_slots)
        spec = RunSpec(
            name="resized",
            code=Code(function=f"{user_code.__file__}:together"),
            metric="loss",
            max_steps=STEPS,
            slots=worker_slots,
            recipe="random",
            listings=provider.listings,
        )
        clock = RunClock(started_at=1e6, wall_at=time.time(), speedup=1.0)
        store = DirectoryStore(run_dir / "checkpoints")
        site = Site(
            run_dir=run_dir,
            code=spec.code,
            folder=tmp_path,
            store=store,
            clock=clock,
            metric="loss",
            slots_per_worker=worker_slots,
        )
        backend = LocalPlace().open(None, site, provider)
        world = LiveWorld(backend, clock, provider.feed, store, run_dir=run_dir)
        policies = [Resized(widths), *build(spec)[1:]]
        journal = MemoryJournal()
        started = e.RunStarted(at=clock.started_at, spec=spec, seed=0, wall_at=clock.wall_at)
        try:
            state = run(world, journal, policies, BudgetAndDeadline(), first=[started])
        finally:
            world.close()
        assert state.concluded
        assert state.jobs["j0"].status == "finished", state.jobs["j0"]
        assert processes_of(run_dir) == {}
        study.run_dir = run_dir
        return list(journal.read())

    return study


def starts(entries):
    return [x for entry in entries for x in entry.decisions if isinstance(x, d.StartSegment)]


def curve(entries):
    reports = [entry.event for entry in entries if isinstance(entry.event, e.JobReported)]
    assert [report.step for report in reports] == list(range(1, STEPS + 1)), "no step is trained twice"
    return [report.metrics["loss"] for report in reports]


def test_a_resized_trial_learns_the_same_as_one_that_was_not_resized(study):
    undisturbed = study((0, 1), machine_slots=2)
    resized = study((0, 1), (5, 2), (15, 1), machine_slots=2)
    assert [start.slots for start in starts(resized)] == [1, 2, 1]
    assert curve(resized) == pytest.approx(curve(undisturbed), abs=1e-9)


def test_a_gang_larger_than_a_machine_spans_several_and_its_workers_get_their_ranks(study):
    resized = study((0, 2), (5, 6), machine_slots=4, worker_slots=2)
    wide = starts(resized)[1]
    assert (wide.slots, wide.shares, len(wide.leases)) == (6, (4, 2), 2)
    task = read_json(study.run_dir / "segments" / wide.segment / "task.json", Task)
    assert (task.world_size, task.machines) == (3, (2, 1))
    curve(resized)
