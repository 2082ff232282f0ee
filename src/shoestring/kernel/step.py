"""step(): one event in, decisions out. The heart of the loop, shared by every clock and every world."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoestring.errors import PolicyError, ShoestringError
from shoestring.kernel.decisions import Decision
from shoestring.kernel.events import Event
from shoestring.kernel.fold.evolve import evolve
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Guard, Policy
from shoestring.kernel.state import RunState
from shoestring.kernel.types import DecisionId
from shoestring.kernel.view import RunView

_NOTHING: tuple[Decision, ...] = ()


class PolicyChain:
    """The policies of a run in their order, found by what wakes them, so that a report nobody wants costs nothing."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = tuple((policy, policy.wants) for policy in policies)
        self.heard: frozenset[type] = frozenset().union(*(policy.wants for policy in policies))


def step(state: RunState, event: Event, bench: PolicyChain, guard: Guard) -> tuple[Decision, ...]:
    """Fold the event, ask the policies in order, pass every wish through the guard, fold what is decided."""
    state.seq += 1
    if event.at > state.now:
        state.now = event.at
    evolve(state, event)
    kind = type(event)
    if kind not in bench.heard:  # a policy woken only by decisions sleeps too: no event, no decision
        return _NOTHING
    taken: list[Decision] = []
    state.decided = taken
    kinds: set[type] = {kind}
    view = RunView(state)
    for policy, wants in bench.policies:
        if wants.isdisjoint(kinds):
            continue
        try:
            for wish in policy.decide(view, event):
                decision = msgspec.structs.replace(guard(view, wish), id=DecisionId(f"{state.seq}.{len(taken)}"))
                if not decision.why:
                    raise PolicyError(f"{type(decision).__name__} without a why")
                evolve(state, decision)
                taken.append(decision)
                kinds.add(type(decision))
        except PolicyError:
            raise
        except ShoestringError as error:
            raise PolicyError(f"{type(policy).__name__} on {kind.__name__}: {error}", hint=error.hint) from error
        except Exception as error:
            raise PolicyError(
                f"{type(policy).__name__} broke on {kind.__name__}: {type(error).__name__}: {error}"
            ) from error
    return tuple(taken)


def replay(state: RunState, entry: Entry) -> None:
    """Fold a recorded turn; decide nothing again."""
    state.seq = entry.seq
    if entry.event.at > state.now:
        state.now = entry.event.at
    evolve(state, entry.event)
    for decision in entry.decisions:
        evolve(state, decision)
