"""What to try next: of many configurations the one with the best outlook for what it takes, some hope for the unknown
included."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.search.elastic.scaling import learned_speeds
from shoestring.policies.search.flex.model import Belief, ledger_of
from shoestring.policies.search.flex.proposals import Numbers, anywhere, around, config_at, encoded
from shoestring.policies.search.flex.slow_trials import StepTimes
from shoestring.policies.search.samplers.protocol import Drawn

ANYWHERE, AROUND, PARENTS = 144, 72, 8
"""Configurations looked at for each new trial: anywhere in the space, and around so many of the best."""
KNOWN = 1e6
"""Taken off a configuration that was tried before: it has nothing new to tell, and is drawn only if all others were."""
SPARING = 0.3
"""What is taken off for e times as much time a step: so much more of something else could be tried."""


class Proposal(NamedTuple):
    drawn: Drawn
    score: float
    """Its outlook with the hope for it, less what it takes."""


def proposed(state: RunView, job: JobId, belief: Belief, *, step: int, hope: float) -> Proposal:
    """For a trial that could be trained to `step`; `hope` is how many deviations count for it."""
    space, ledger = state.spec.space, ledger_of(state)
    rng = np.random.default_rng(state.fixed_rng(f"candidates:{job}").getrandbits(64))
    jobs = list(state.jobs.values())
    best = np.argsort(-ledger.latest(belief.since), kind="stable")[:PARENTS]
    rows = np.concatenate([anywhere(space, ANYWHERE, rng), around(space, [jobs[k].config for k in best], AROUND, rng)])
    x = encoded(space, rows)
    mean, deviation = belief.outlook_of_new(x, step)
    silent = [state.jobs[tried].number for tried in _being_tried(state) if not state.jobs[tried].values]
    score = mean + hope * deviation * belief.room(x, ledger.x[silent])
    score -= SPARING * StepTimes(ledger, learned_speeds(state)).log_ratio(x)
    score[_known(x, ledger.x[: ledger.count])] -= KNOWN
    chosen = int(np.argmax(score))
    return Proposal(Drawn(config_at(space, rows[chosen]), "drawn from the model"), float(score[chosen]))


def _known(x: Numbers, tried: Numbers) -> NDArray[np.bool_]:
    """Which of these have been tried before, number for number: in a space of few configurations many have."""
    before = {row.tobytes() for row in tried}
    return np.array([row.tobytes() in before for row in x])


def _being_tried(state: RunView) -> list[JobId]:
    return [*(segment.job for segment in state.segments.values()), *state.waiting]
