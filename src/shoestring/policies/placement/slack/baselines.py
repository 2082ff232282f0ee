"""Baselines that the slack programme is compared with.

Both are of "Can't Be Late: Optimizing Spot Instance Savings under Deadlines" (NSDI 2024), and both keep the guarantee.
Of several zones with machines they choose the cheapest, and a spot machine is used until it is preempted.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.policies.placement.slack.guarantee import (
    ON_DEMAND,
    WAIT,
    MachineChoice,
    Situation,
    SlackChoice,
    Switching,
    guarded,
)
from shoestring.policies.placement.slack.zones import Quote

AHEAD_SETUPS = 2.0
"""This many set-ups ahead of schedule, Uniform Progress leaves an on-demand machine; with less it would oscillate."""


def greedy(now: Situation, switching: Switching, quotes: Sequence[Quote]) -> SlackChoice:
    """Spot while any is available, else wait; on-demand when the guarantee requires it, and then to the end."""
    if now.here is MachineChoice.ON_DEMAND:
        return ON_DEMAND
    return guarded(_cheapest_or(WAIT, now, quotes), now, switching)


def uniform_progress(
    now: Situation, switching: Switching, quotes: Sequence[Quote], work_s: float, deadline_s: float
) -> SlackChoice:
    """Progress in proportion to time: behind schedule, on-demand; two set-ups ahead of it, back to spot. `work_s` is
    all the work, and `deadline_s` all the time, that there was at the start."""
    passed_s = deadline_s - now.time_left_s
    ahead_s = (work_s - now.work_left_s) - passed_s * work_s / deadline_s
    if now.here is MachineChoice.ON_DEMAND:
        far_ahead = ahead_s >= AHEAD_SETUPS * switching.setup_s
        proposed = _cheapest_or(WAIT, now, quotes) if far_ahead else ON_DEMAND
    else:
        proposed = _cheapest_or(ON_DEMAND if ahead_s < 0 else WAIT, now, quotes)
    return guarded(proposed, now, switching)


def _cheapest_or(otherwise: SlackChoice, now: Situation, quotes: Sequence[Quote]) -> SlackChoice:
    if now.here is MachineChoice.SPOT:
        return SlackChoice(MachineChoice.SPOT, now.zone)
    if not quotes:
        return otherwise
    return SlackChoice(MachineChoice.SPOT, min(quotes, key=lambda quote: (quote.usd_per_hour, quote.zone)).zone)
