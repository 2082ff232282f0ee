"""The breaker: machines that are given back, round after round, before a trial ran on them stop the renting."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import EndCause
from shoestring.policies.housekeeping.closing import Closing
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.renting.breaker import MOST_ROUNDS, renting_stopped
from shoestring.recipes import build
from shoestring.report.study import Study
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.story import SPEC, SPOT, Story, story
from tests.world.runs import simulated_world


def round_of(run: Story, number: int, cause: EndCause = "released", machines: int = 1) -> None:
    """Machines are rented, come up, and are gone again."""
    at = 100.0 * number
    run.happened(e.TimerFired(at=at, name="tick"))
    leases = []
    for _ in range(machines):
        leases.append(run.view.next_lease())
        run.order(d.RequestLease(lease=leases[-1], offer=SPOT, end_by=at + 900.0, why="the story"))
    for lease in leases:
        run.happened(e.LeaseGranted(at=at + 40.0, lease=lease))
        run.happened(e.LeaseEnded(at=at + 42.0, lease=lease, cause=cause, charged_usd=0.001))


def with_a_waiting_trial(*policies: object) -> Story:
    run = story(*policies)  # type: ignore[arg-type]
    run.add("j0", until_step=9)
    return run


def ask(run: Story) -> d.Decision:
    lease = run.view.next_lease()
    (answer,) = run.order(d.RequestLease(lease=lease, offer=SPOT, end_by=run.view.now + 900.0, why="a test"))
    return answer


def test_after_some_rounds_of_machines_given_back_unused_the_guard_refuses_to_rent_and_says_why() -> None:
    run = with_a_waiting_trial()
    for number in range(MOST_ROUNDS):
        assert not renting_stopped(run.view)
        round_of(run, number, machines=2)
    answer = ask(run)
    assert isinstance(answer, d.Refused)
    assert answer.why == (
        "renting has stopped: the last 10 machines were given back before a trial could run on them "
        "(slice_s is 15m, wind_down_s 2m, and a machine takes 40s to start)"
    )


def test_many_machines_requested_at_once_are_one_round() -> None:
    run = with_a_waiting_trial()
    round_of(run, 1, machines=50)
    assert (run.view.given_back.rounds, run.view.given_back.machines) == (1, 50)


@pytest.mark.parametrize("cause", ["revoked", "lost"])
def test_machines_that_the_market_takes_are_not_counted(cause: EndCause) -> None:
    run = with_a_waiting_trial()
    for number in range(2 * MOST_ROUNDS):
        round_of(run, number, cause)
    assert not renting_stopped(run.view)
    assert run.view.setbacks[SPOT].rounds == 2 * MOST_ROUNDS


def test_machines_that_no_trial_waits_for_are_not_counted() -> None:
    run = story()
    for number in range(2 * MOST_ROUNDS):
        round_of(run, number)
    assert not renting_stopped(run.view)


def test_a_trial_that_runs_ends_the_count() -> None:
    run = with_a_waiting_trial()
    for number in range(MOST_ROUNDS - 1):
        round_of(run, number)
    lease = run.view.next_lease()
    run.rent(lease)
    run.start("s0", "j0", lease, running_since=run.view.now)
    assert run.view.given_back.rounds == 0


@pytest.mark.parametrize("wish", ["amend", "resume"])
def test_a_user_who_has_looked_at_it_may_try_again(wish: e.Wish) -> None:
    run = with_a_waiting_trial()
    for number in range(MOST_ROUNDS):
        round_of(run, number)
    run.happened(e.UserAsked(at=run.view.now, wish=wish))
    assert isinstance(ask(run), d.RequestLease)


def test_the_run_ends_as_failed_once_no_machine_is_held() -> None:
    run = with_a_waiting_trial(Cheapest(), Closing())
    for number in range(MOST_ROUNDS):
        round_of(run, number)
    decided = run.tell(e.TimerFired(at=run.view.now, name="tick"))
    assert [type(x) for x in decided] == [d.WindDown, d.Conclude]
    assert decided[0].reason == "failed"
    assert run.state.concluded


def test_a_run_whose_machines_never_have_time_to_work_stops_after_a_few_of_them() -> None:
    """A spec file with these numbers is refused. Before there was a breaker, 2,676 machines were rented."""
    spec = replace(SPEC, wind_down_s=1000.0, slice_s=900.0, deadline_s=8 * 3600.0, budget_usd=5.0, trials=8)
    journal, world = MemoryJournal(), simulated_world()
    state = run(world, journal, build(spec), BudgetAndDeadline(), first=[e.RunStarted(at=0.0, spec=spec, seed=0)])
    study = Study(journal.read)
    assert study.status == "failed"
    assert study.status_detail.startswith("renting has stopped: the last ")
    assert MOST_ROUNDS <= study.receipt.unused == study.receipt.leases <= 2 * MOST_ROUNDS * spec.max_machines
    assert "machines ended before a trial ran on them" in str(study.receipt)
    assert not state.leases


def test_the_count_is_part_of_the_fold() -> None:
    """A controller that reads the journal stops at the same entry as the one that wrote it."""
    run = with_a_waiting_trial()
    for number in range(MOST_ROUNDS):
        round_of(run, number)
    assert run.replayed().given_back == run.state.given_back
    assert run.replayed().setbacks == run.state.setbacks
