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
"""What does not shrink with the data may be so many times as large as that of the fastest run."""


class PastRun(NamedTuple):
    """A run that finished on this data fraction, or was ended at a limit there."""

    fraction: float
    spent: Mapping[str, float]
    """Seconds and cost by these names, where they are known."""
    killed: bool = False


def ends(constraints: Iterable[Constraint], fraction: float, past: Sequence[PastRun] = ()) -> dict[str, float]:
    """Seconds and cost, by these names, at which a run on this data fraction is ended: the limit itself on the full
    data, and on a fraction s

        max(limit * s^LEAST_POWER, ROOM * least + limit * s) * 2^killed      but never more than the limit

    `least` is what the fastest run took that finished on this fraction, or else on the next smaller one with such a run:
    that bounds the part that does not shrink with the data, and the other part is at most limit * s if the full run
    satisfies the constraint. `killed` runs were ended on this fraction while none has finished on it, so they say
    nothing of their configurations and the end was too soon, or all are hopeless: either way a few kills find out.
    """
    found = {one.metric: one.limit for one in constraints if one.at_most and one.metric in (COST, SECONDS)}
    if fraction == 1.0:
        return found
    here = [run for run in past if run.fraction == fraction]
    finished = any(not run.killed for run in here)
    doubled = 1.0 if finished else 2.0 ** min(len(here), 60)
    return {
        metric: min(limit, doubled * max(limit * fraction**LEAST_POWER, _room(past, metric, limit, fraction)))
        for metric, limit in found.items()
    }


def _room(past: Iterable[PastRun], metric: str, limit: float, fraction: float) -> float:
    """ROOM * least + limit * fraction; 0 while no run tells."""
    least: dict[float, float] = {}
    for run in past:
        if not run.killed and run.fraction <= fraction and metric in run.spent:
            least[run.fraction] = min(run.spent[metric], least.get(run.fraction, run.spent[metric]))
    return ROOM * least[max(least)] + limit * fraction if least else 0.0
