"""User requests to a run: pause and resume, stop, another budget, another deadline."""

import pytest

from shoestring.controller import run
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.storage.journal.memory import MemoryJournal
from tests.world.restless import GUARD, POLICIES, REFERENCE, START, Around, a_world, resumed
from tests.world.runs import decided, events_of, opening


class Interrupted(Around):
    """A user request right after the n-th event."""

    def __init__(self, wish: str, after: int, **fields) -> None:
        super().__init__()
        self.wish, self.left, self.fields = wish, after, fields

    def next_event(self) -> e.Event:
        self.left -= 1
        if self.left == -1:
            return e.UserAsked(at=self.inner.now, wish=self.wish, **self.fields)
        return self.inner.next_event()


@pytest.mark.parametrize("after", [0, 4, 11, 23, 37])
def test_a_pause_releases_every_machine_and_a_resume_finds_the_same_best(after):
    journal = MemoryJournal()
    paused = run(Interrupted("pause", after), journal, POLICIES, GUARD, first=[START])
    assert (paused.phase, paused.leases, paused.segments) == ("pausing", {}, {})
    entries = list(journal.read())
    assert len(events_of(entries, e.LeaseEnded, e.LeaseDenied)) == len(decided(entries, d.RequestLease))

    again = run(a_world(), journal, POLICIES, GUARD)
    assert again.phase == "pausing", "a pause lasts until the user resumes"
    assert list(journal.read()) == entries

    state = resumed(journal)
    assert state.concluded
    assert (state.best, state.jobs[state.best].best) == (REFERENCE.best, REFERENCE.jobs[REFERENCE.best].best)


def test_what_was_saved_for_a_pause_is_not_trained_again():
    journal = MemoryJournal()
    run(Interrupted("pause", 23), journal, POLICIES, GUARD, first=[START])
    state = resumed(journal)
    reports = [(event.job, event.step) for event in events_of(list(journal.read()), e.JobReported)]
    assert len(reports) - len(set(reports)) == state.lost_steps


@pytest.mark.parametrize("after", [0, 23])
def test_a_stop_ends_the_run_with_what_it_has(after):
    journal = MemoryJournal()
    state = run(Interrupted("stop", after), journal, POLICIES, GUARD, first=[START])
    assert (state.concluded, state.ending, state.leases) == (True, "stopped by the user", {})
    (end,) = decided(list(journal.read()), d.Conclude)
    assert end.best == state.best
    assert not decided(list(journal.read())[after + 1 :], d.StartSegment)


def test_a_paused_run_can_be_stopped():
    journal = MemoryJournal()
    paused = run(Interrupted("pause", 23), journal, POLICIES, GUARD, first=[START])
    state = run(a_world(), journal, POLICIES, GUARD, first=[e.UserAsked(at=paused.now, wish="stop")])
    assert (state.concluded, state.best) == (True, paused.best)


# -- another budget ----------------------------------------------------------------------------------------------------
POOR = opening(a_world(), trials=6, max_steps=9, max_machines=2, budget_usd=0.1)


def more_budget(at: float) -> e.UserAsked:
    return e.UserAsked(at=at, wish="amend", budget_usd=1.0)


def test_a_run_out_of_budget_ends_unfinished_and_resumes_with_more_budget():
    journal = MemoryJournal()
    state = run(a_world(), journal, POLICIES, GUARD, first=[POOR])
    assert "no more machines can be rented" in state.ending
    assert state.by_status["finished"] < 6
    assert state.spent_usd <= 0.1
    revived = run(a_world(), journal, POLICIES, GUARD, first=[more_budget(state.now)])
    assert (revived.concluded, revived.ending) == (True, "all work is done")
    assert revived.by_status["finished"] == 6
    assert 0.1 < revived.spent_usd <= 1.0


def test_a_stopped_run_does_not_resume_with_more_budget():
    journal = MemoryJournal()
    state = run(Interrupted("stop", 23), journal, POLICIES, GUARD, first=[START])
    revived = run(a_world(), journal, POLICIES, GUARD, first=[more_budget(state.now)])
    assert (revived.concluded, revived.by_status, revived.spent_usd) == (True, state.by_status, state.spent_usd)


@pytest.mark.parametrize("requests", [0, 1])
def test_a_paused_run_resumes_up_to_its_budget(requests):
    journal = MemoryJournal()
    paused = run(Interrupted("pause", 23), journal, POLICIES, GUARD, first=[POOR])
    state = resumed(journal, *[more_budget(paused.now)][:requests])
    assert state.concluded
    if requests:
        assert state.ending == "all work is done"
        assert state.by_status["finished"] == 6
        assert 0.1 < state.spent_usd <= 1.0
    else:
        assert "no more machines can be rented" in state.ending
        assert state.spent_usd <= 0.1


def test_a_budget_raised_in_time_lets_a_run_finish():
    state = run(Interrupted("amend", 23, budget_usd=1.0), MemoryJournal(), POLICIES, GUARD, first=[POOR])
    assert (state.by_status["finished"], state.ending) == (6, "all work is done")


def test_a_deadline_brought_forward_ends_the_run_by_then():
    journal = MemoryJournal()
    state = run(Interrupted("amend", 23, deadline_s=700.0), journal, POLICIES, GUARD, first=[START])
    assert state.ending == "the deadline is near"
    assert max(entry.event.at for entry in journal.read()) <= 700.0
