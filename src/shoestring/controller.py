"""The loop: the only place where step(), the journal and the world meet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from shoestring.errors import PolicyError
from shoestring.kernel.decisions import ACTS_ON_THE_WORLD, Decision
from shoestring.kernel.events import Event, PolicyBroke
from shoestring.kernel.history import Entry, RecordedEvents
from shoestring.kernel.policy import Guard, Policy
from shoestring.kernel.state import RunState
from shoestring.kernel.step import PolicyChain, replay, step
from shoestring.kernel.view import RunView
from shoestring.policies.housekeeping.closing import Closing
from shoestring.storage.journal.protocol import Journal
from shoestring.world.protocol import World

Watcher = Callable[[RunState, Entry], None]
"""Called after each recorded turn, with the state that it led to."""


def run(
    world: World,
    journal: Journal,
    policies: Sequence[Policy],
    guard: Guard,
    *,
    first: Sequence[Event] = (),
    watcher: Watcher | None = None,
    recalled: tuple[RunState, RecordedEvents] | None = None,
) -> RunState:
    """Drive one run to its end or its pause, from where the last controller stopped.

    `first` is handled before any event of the world: RunStarted for a new run, a request to resume for a paused one. If
    a policy raises, nothing of its turn is recorded: the run is parked (save, halt, release, through the same journal)
    and the PolicyError is raised once nothing costs money any more. `recalled`: what `recall` would give, from a caller
    that has folded the journal already.
    """
    state, past = recall(journal, world) if recalled is None else recalled
    state.feed = world.feed
    world.attach(past)
    past.forget_entries()
    chain = PolicyChain(policies)
    next_event, append, carry_out = world.next_event, journal.append, world.carry_out
    broken: PolicyError | None = None
    queued = deque(first)
    while queued or state.active:
        event = queued.popleft() if queued else next_event()  # waits in real time, jumps in virtual time
        if not past.is_new(event):  # at-least-once delivery, recorded once
            continue
        try:
            decisions = step(state, event, chain, guard)
        except PolicyError as error:
            if broken is not None:
                raise  # the fixed rule itself broke: there is nothing safer to try
            broken = error
            journal.sync()
            state, past = recall(journal, world)  # the broken turn never happened
            past.forget_entries()
            chain, guard = PolicyChain([Closing()]), _accept_all
            queued.appendleft(event)  # the event itself did happen: the fixed rule handles it too
            event = PolicyBroke(at=max(state.now, event.at), detail=str(error))
            past.is_new(event)
            decisions = step(state, event, chain, guard)
        # The commit point: before it nothing happened, after it all of it must.
        entry = Entry(seq=state.seq, event=event, decisions=decisions)
        if decisions:
            append(entry, wait=any(type(decision) in ACTS_ON_THE_WORLD for decision in decisions))
            for decision in decisions:
                carry_out(decision)
        else:
            append(entry, wait=False)
        if watcher is not None:
            watcher(state, entry)
    journal.sync()
    if broken is not None:
        raise broken
    return state


def both(one: Watcher, other: Watcher) -> Watcher:
    def watch(state: RunState, entry: Entry) -> None:
        one(state, entry)
        other(state, entry)

    return watch


def _accept_all(_: RunView, proposed: Decision) -> Decision:
    """The guard of a parked run: halting and releasing cost nothing, and the real guard may be what broke."""
    return proposed


def recall(journal: Journal, world: World) -> tuple[RunState, RecordedEvents]:
    """The state and the recorded events, rebuilt from the journal; nothing is decided again."""
    state, past = RunState(world.feed), RecordedEvents()
    for entry in journal.read():
        replay(state, entry)
        past.replayed(entry)
    return state, past
