"""A new simulated world replays a recorded run, and refuses one that it would not produce."""

import math

import pytest

from shoestring import recipes
from shoestring.controller import recall, run
from shoestring.errors import JournalDamaged
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry, RecordedEvents
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.crashing_journal import Crash, CrashingJournal
from shoestring.world.sim.workload import Latencies
from tests.world.runs import opening, simulate, simulated_world
from tests.world.scenes import dies_at_age, market


def a_world(*, age_s=500.0, provision_s=40.0, prices=((0.0,), (0.36,)), **fields):
    return simulated_world(market(dies_at_age(age_s), provision_s=provision_s, prices=prices), **fields)


RECORDED = simulate(a_world(), max_steps=12)[1]


def past_of(entries: list[Entry]) -> RecordedEvents:
    past = RecordedEvents()
    for entry in entries:
        past.replayed(entry)
    return past


def test_after_attaching_to_any_prefix_of_a_run_the_rest_happens_as_recorded():
    for known in range(1, len(RECORDED)):
        world = a_world()
        world.attach(past_of(RECORDED[:known]))
        for entry in RECORDED[known:]:
            assert world.next_event() == entry.event
            for decision in entry.decisions:
                world.carry_out(decision)


def first(kind: type[e.Event]) -> int:
    return next(entry.seq for entry in RECORDED if isinstance(entry.event, kind))


@pytest.mark.parametrize(
    ("other", "differs_from"),
    [
        ({"provision_s": 41.0}, e.LeaseGranted),
        ({"latencies": Latencies(start_s=30.0)}, e.SegmentStarted),
        ({"curve": lambda _: lambda step: {"loss": 2 / step}}, e.JobReported),
        ({"age_s": 505.0}, e.RevocationNoticed),
        ({"checkpoint_gb": 0.6}, e.CheckpointSaved),
        ({"prices": ((0.0, 100.0), (0.36, 0.4))}, e.LeaseEnded),
    ],
)
def test_a_run_of_another_world_is_refused_at_its_first_entry_that_differs(other, differs_from):
    with pytest.raises(
        JournalDamaged, match=rf"^entry {first(differs_from)} records {differs_from.__name__}"
    ) as refusal:
        a_world(**other).attach(past_of(RECORDED))
    assert "same market, workload and seed" in refusal.value.hint


def test_values_that_are_not_numbers_are_recognised_when_read_back_from_disk(tmp_path):
    diverging = {"curve": lambda _: lambda step: {"loss": math.nan if step > 2 else 1 / step}}
    start = opening(a_world(), max_steps=12)
    policies, guard = recipes.build(start.spec), BudgetAndDeadline()

    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    with pytest.raises(Crash):
        run(a_world(**diverging), CrashingJournal(journal, crash_after=20), policies, guard, first=[start])
    journal.close()

    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    run(a_world(**diverging), journal, policies, guard)
    reference = MemoryJournal()
    run(a_world(**diverging), reference, policies, guard, first=[start])
    assert [entry.seq for entry in journal.read()] == [entry.seq for entry in reference.read()]
    state, _ = recall(journal, a_world())
    assert state.jobs["j0"].best == 0.5
    assert math.isnan(state.jobs["j0"].values[-1])
    journal.close()
