"""step(): one event in, decisions out. The heart of the loop, shared by every clock and every world."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoestring.errors import PolicyError, ShoestringError
from shoestring.kernel.decisions import Decision
from shoestring.kernel.events import Event
from shoestring.kernel.fold.evolve import FOLDS, evolve
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Guard, Policy
from shoestring.kernel.state import RunState
from shoestring.kernel.types import DecisionId
from shoestring.kernel.view import RunView

_NOTHING: tuple[Decision, ...] = ()


class PolicyChain:
    """The policies of a run in their order, with what wakes them, so that a report that no policy wants costs
    nothing."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = tuple((policy, policy.wants) for policy in policies)
        self.wakers: frozenset[type] = frozenset().union(*(policy.wants for policy in policies))


def step(state: RunState, event: Event, chain: PolicyChain, guard: Guard) -> tuple[Decision, ...]:
    """Fold the event, call the policies in order, pass every proposed decision through the guard, fold what it
    returns."""
    state.seq += 1
    if event.at > state.now:
        state.now = event.at
    kind = type(event)
    fold = FOLDS.get(kind)
    if fold is not None:  # evolve(), inlined because every report passes here
        fold(state, event)
    if kind not in chain.wakers:  # nor is a policy woken that waits for decisions: there are none
        return _NOTHING
    decided: list[Decision] = []
    state.decided = decided
    kinds: set[type] = {kind}
    view = RunView(state)
    for policy, wants in chain.policies:
        if wants.isdisjoint(kinds):
            continue
        try:
            for proposed in policy.decide(view, event):
                decision = msgspec.structs.replace(guard(view, proposed), id=DecisionId(f"{state.seq}.{len(decided)}"))
                if not decision.why:
                    raise PolicyError(f"{type(decision).__name__} without a why")
                evolve(state, decision)
                decided.append(decision)
                kinds.add(type(decision))
        except PolicyError:
            raise
        except ShoestringError as error:
            raise PolicyError(f"{type(policy).__name__} on {kind.__name__}: {error}", hint=error.hint) from error
        except Exception as error:
            raise PolicyError(
                f"{type(policy).__name__} broke on {kind.__name__}: {type(error).__name__}: {error}"
            ) from error
    return tuple(decided)


def replay(state: RunState, entry: Entry) -> None:
    """Fold a recorded turn; decide nothing again."""
    state.seq = entry.seq
    if entry.event.at > state.now:
        state.now = entry.event.at
    evolve(state, entry.event)
    for decision in entry.decisions:
        evolve(state, decision)
