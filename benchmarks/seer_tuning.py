"""How the baseline ASHA + TPE was tuned: every first rung and eta of a small grid, on the tuning tasks alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.seer_arena import Setting
from benchmarks.seer_contestants import asha_tpe
from benchmarks.seer_market import Cell

GRACE_STEPS = (1, 2, 4)
ETA = (2, 3, 4)


def candidates(cells: Sequence[Cell]) -> dict[str, dict[Cell, Setting]]:
    return {
        f"grace_steps={grace_steps} eta={eta}": {cell: asha_tpe(cell, grace_steps, eta) for cell in cells}
        for grace_steps in GRACE_STEPS
        for eta in ETA
    }
