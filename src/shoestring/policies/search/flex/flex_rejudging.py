"""Trials that were judged too early: when it turns out that ranks hold only later, the most promising of them are
trained on to where they do. What they have been trained is not paid for again."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.policies.search.elastic.scaling import Speeds
from shoestring.policies.search.flex.flex_proposals import SPARING
from shoestring.policies.search.flex.model import Belief
from shoestring.policies.search.flex.resources import Means


class Rejudged(NamedTuple):
    job: Job
    score: float
    """In the terms of `flex_proposals.Proposal`."""


def rejudged(
    state: RunView, belief: Belief, speeds: Speeds, now: Means, *, grace: int, alone: int, hope: float
) -> Rejudged | None:
    """The best of those that rest before the step `grace`; on `alone` slots they would be trained to the end."""
    resting = [job for job in state.jobs.values() if job.status == "paused" and job.segment is None and job.values]
    early = [job for job in resting if job.step < grace and math.isfinite(job.values[-1])]
    if not early:
        return None
    fastest = speeds.speedup(alone)
    more = [now.steps(speeds.step_s(job.id) / fastest, switching=True) for job in early]
    ends = np.array([min(state.spec.max_steps, job.step + steps) for job, steps in zip(early, more, strict=True)])
    mean, deviation = belief.outlook(np.array([job.number for job in early]), ends)
    share = [speeds.step_s(job.id) / speeds.usual_s * (grace - job.step) / grace for job in early]
    score = mean + hope * deviation - SPARING * np.log(share)
    best = int(np.argmax(score))
    return Rejudged(early[best], float(score[best]))
