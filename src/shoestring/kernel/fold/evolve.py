"""evolve(): the one fold over events and decisions.

Laws: it never decides, never reads a clock or a price, and treats a replayed fact like a new one.
"""

from __future__ import annotations

from shoestring.kernel.decisions import Decision
from shoestring.kernel.events import Event
from shoestring.kernel.fold.decisions import DECISION_FOLDS
from shoestring.kernel.fold.events import EVENT_FOLDS
from shoestring.kernel.state import RunState

FOLDS = EVENT_FOLDS | DECISION_FOLDS


def evolve(state: RunState, fact: Event | Decision) -> None:
    """Fold one event or one decision into the state."""
    fold = FOLDS.get(type(fact))
    if fold is not None:
        fold(state, fact)
