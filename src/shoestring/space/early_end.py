"""Where a run on a data fraction is ended early, because on the full data its configuration would violate a constraint.

A sixteenth of the data that has taken a fifth of the limit leaves little hope for the rest, and where some
configurations are slower than others by orders of magnitude, most of the money would be spent on such runs. But how a
cost shrinks with the data is an assumption: loading and compiling do not shrink at all. So what was seen corrects it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shoestring.space.constraints import COST, SECONDS, Constraint

LEAST_POWER = 0.6
"""cost(s) ~ s^power on a data fraction s, with a power of 1 +- 0.3 (`optimizer.outcome_model.SPENDING`). This is lower
by more than a deviation."""
ROOM = 1.5
"""What does not shrink with the data may be so many times as much as the fastest run took in all."""


class PastRun(NamedTuple):
    """A run that finished on this data fraction, or was ended at a limit there."""

    fraction: float
    spent: Mapping[str, float]
    """Seconds and cost by these names, where they are known."""
    killed: bool = False


def ends(constraints: Iterable[Constraint], fraction: float, past: Sequence[PastRun] = ()) -> dict[str, float]:
    """Seconds and cost, by these names, at which a run on this data fraction is ended: the limit itself on the full
    data, and never more than that. On a fraction s

        limit * s^LEAST_POWER * 2^(killed - 1)                       while no run has finished
        max(limit * s^LEAST_POWER, fixed + (limit - fixed) * s)      afterwards, with fixed = ROOM * least

    `killed` runs were ended on this fraction: the end is too soon, or they are hopeless, and a few more kills find out.
    The first counts as none, for a hopeless one is common where configurations differ much.
    `least` is what the fastest run took that finished, on whatever fraction, with all that does not shrink with the
    data. If no other configuration has more than ROOM times as much of that, none is ended here that would satisfy the
    constraint on the full data.
    """
    found = {one.metric: one.limit for one in constraints if one.at_most and one.metric in (COST, SECONDS)}
    if fraction == 1.0:
        return found
    kills = sum(run.killed and run.fraction == fraction for run in past)
    return {metric: min(limit, _end(metric, limit, fraction, past, kills)) for metric, limit in found.items()}


def _end(metric: str, limit: float, fraction: float, past: Iterable[PastRun], kills: int) -> float:
    soonest: float = limit * fraction**LEAST_POWER
    took = [run.spent[metric] for run in past if not run.killed and metric in run.spent]
    if not took:
        return soonest * float(2 ** min(max(kills - 1, 0), 60))
    fixed = ROOM * min(took)
    return max(soonest, fixed + (limit - fixed) * fraction)
