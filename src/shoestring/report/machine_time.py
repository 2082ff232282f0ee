"""How much of the time that machines were held trained, and what the rest was: starting, restoring, saving, work that
was lost, idle.

Pure: a function of the state, so of the journal. Time is that of whole machines: on a machine of four slots a trial on
one of them uses a quarter, and the slots without a trial are idle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shoestring.kernel.records import MachineTime
from shoestring.kernel.state import RunState


@dataclass(frozen=True, slots=True)
class HeldTime:
    held_s: float
    used: MachineTime

    @property
    def idle_s(self) -> float:
        return max(0.0, self.held_s - self.used.used_s)

    @property
    def trained_share(self) -> float | None:
        """None: nothing was held."""
        return self.used.trained_s / self.held_s if self.held_s > 0 else None


def billed_time(state: RunState) -> HeldTime:
    """Of machines that are gone and billed: what a receipt is about."""
    used = MachineTime()
    for account in state.accounts.values():
        used.add(account.time)
    return HeldTime(math.fsum(account.seconds for account in state.accounts.values()), used)


def time_so_far(state: RunState) -> HeldTime:
    """Of all machines, those still held too."""
    billed = billed_time(state)
    held_s, used = billed.held_s, billed.used
    for lease in state.leases.values():
        if lease.billed_from is None:
            continue
        held_s += max(0.0, state.now - lease.billed_from)
        used.add(lease.time)
        for segment in map(state.segments.__getitem__, lease.segments):
            share = dict(zip(segment.leases, segment.slots_on, strict=True))[lease.id] / lease.slots
            used.add(segment.time(state.now, lost=False), share)
    return HeldTime(held_s, used)
