"""step(): which policies are called, in which order, and what is left of a turn that breaks."""

from __future__ import annotations

import subprocess
import sys
from hashlib import blake2b

import pytest

from shoestring.controller import run as drive
from shoestring.errors import IllegalDecision, PolicyError, SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView, stable_seed
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, ConstantPrices, Story, story


class Decides:
    """A policy with fixed decisions, which records what it saw."""

    def __init__(self, *decisions: d.Decision, wants: set[Waker] | None = None) -> None:
        self.decisions = decisions
        self.wants = frozenset(wants or {e.TimerFired})
        self.saw: list[list[str]] = []

    def decide(self, state: RunView, event: e.Event):  # noqa: ARG002
        self.saw.append([type(decision).__name__ for decision in state.decided])
        yield from self.decisions


class Breaks(Decides):
    def __init__(self, error: Exception, *decisions: d.Decision) -> None:
        super().__init__(*decisions)
        self.error = error

    def decide(self, state: RunView, event: e.Event):
        yield from super().decide(state, event)
        raise self.error


ADD = d.AddJob(job="j0", config={}, why="one")
RUN = d.RunJob(job="j0", until_step=1, why="two")
TICK = e.TimerFired(at=1.0, name="tick")


def test_each_policy_sees_what_those_before_it_decided() -> None:
    first, second = Decides(ADD), Decides(RUN)
    run = story(first, second)
    assert run.tell(TICK) == [ADD, RUN]
    assert (first.saw, second.saw) == ([[]], [["AddJob"]])
    assert run.state.jobs["j0"].status == "waiting"


def test_decisions_are_stamped_with_entry_and_index() -> None:
    run = story(Decides(ADD, RUN))
    run.tell(TICK)
    assert [decision.id for decision in run.entries[-1].decisions] == [f"{run.state.seq}.0", f"{run.state.seq}.1"]


def test_only_policies_that_want_the_event_are_called() -> None:
    deaf = Decides(wants={e.LeaseGranted})
    run = story(deaf)
    assert run.tell(TICK) == []
    assert deaf.saw == []


def test_a_decision_wakes_later_policies_that_want_it() -> None:
    before, after = Decides(wants={d.AddJob}), Decides(RUN, wants={d.AddJob})
    run = story(before, Decides(ADD), after)
    assert run.tell(TICK) == [ADD, RUN]
    assert before.saw == []


def test_the_guard_stands_in_the_middle_of_the_turn() -> None:
    """What it refuses was never decided: the policy sees the refusal before it decides further."""

    class Requests(Decides):
        def decide(self, state: RunView, event: e.Event):  # noqa: ARG002
            yield d.RequestLease(lease=state.next_lease(), offer=SPOT, end_by=state.now + 5.0, why="too short")
            yield d.TagJob(job="j0", tags={"refusals": state.refusals, "leases": len(state.leases)}, why="seen")

    run = story(Requests(), job="j0")
    refused, seen = run.tell(TICK)
    assert isinstance(refused, d.Refused)
    assert refused.wish.why == "too short"
    assert seen.tags == {"refusals": 1, "leases": 0}


def test_a_decision_without_a_reason_is_a_bug() -> None:
    with pytest.raises(PolicyError, match="without a why"):
        story(Decides(d.WindDown(reason="completed", why=""))).tell(TICK)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("by zero"), "Breaks broke on TimerFired: ZeroDivisionError: by zero"),
        (SpecError("no such thing", hint="look"), "Breaks on TimerFired: no such thing"),
    ],
)
def test_a_policy_that_raises_is_named(error: Exception, message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        story(Breaks(error)).tell(TICK)
    assert caught.value.hint == getattr(error, "hint", "")


def test_an_illegal_decision_is_distinguished_from_a_crash() -> None:
    with pytest.raises(IllegalDecision, match="never added"):
        story(Decides(RUN)).tell(TICK)


class Bell:
    """A world with a single timer event."""

    feed = ConstantPrices({SPOT: 0.3, ON_DEMAND_OFFER: 1.0})

    def __init__(self) -> None:
        self.done: list[d.Decision] = []

    def attach(self, past) -> None: ...

    def next_event(self) -> e.Event:
        return TICK

    def carry_out(self, decision: d.Decision) -> None:
        self.done.append(decision)


def test_nothing_of_a_broken_turn_is_recorded_or_done() -> None:
    world, journal = Bell(), MemoryJournal()
    broken = Breaks(ZeroDivisionError("by zero"), ADD, d.RequestLease(lease="l0", offer=SPOT, end_by=900.0, why="x"))
    with pytest.raises(PolicyError, match="by zero"):
        drive(world, journal, [broken], BudgetAndDeadline(), first=[e.RunStarted(at=0.0, spec=SPEC, seed=0)])
    entries = list(journal.read())
    assert [type(entry.event) for entry in entries[:2]] == [e.RunStarted, e.PolicyBroke]
    assert not any(isinstance(x, d.AddJob | d.RequestLease) for entry in entries for x in entry.decisions)
    assert not any(isinstance(x, d.RequestLease) for x in world.done)


def test_chance_is_the_same_on_every_replay_and_another_for_every_label_and_entry() -> None:
    run = story()
    draws = {label: run.view.rng(label).random() for label in ("a", "b")}
    assert {label: RunView(run.replayed()).rng(label).random() for label in ("a", "b")} == draws
    assert draws["a"] != draws["b"]
    run.happened(TICK)
    assert run.view.rng("a").random() != draws["a"]


def test_seeds_are_the_same_in_every_process() -> None:
    """A journal is resumed by another process, perhaps on another machine: `hash` would differ there."""
    by_hand = int.from_bytes(blake2b(b"1\x1fa\x1f2", digest_size=8).digest(), "big")
    assert stable_seed(1, "a", 2) == by_hand
    code = "from shoestring.kernel.view import stable_seed; print(stable_seed(1, 'a', 2))"
    for hash_seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": hash_seed}, check=True, capture_output=True, text=True
        )
        assert int(out.stdout) == by_hand


def test_a_memo_is_kept_with_the_state_and_derived_again_when_lost() -> None:
    run: Story = story()
    made: list[int] = []

    def derive() -> list[int]:
        made.append(1)
        return made

    assert run.view.memo("me", derive) is run.view.memo("me", derive)
    assert len(made) == 1
    RunView(run.replayed()).memo("me", derive)
    assert len(made) == 2


def test_prices_can_only_be_queried_up_to_now() -> None:
    run = story()
    run.happened(e.TimerFired(at=77.0, name="x"))
    assert run.view.usd_per_hour(SPOT) == 0.3
    assert run.view.history(SPOT).until == 77.0
