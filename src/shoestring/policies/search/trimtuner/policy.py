"""TrimTuner: hyper-parameters, machines and data fractions chosen together, by models of all measurements.

The choice is a background task (`Think`): preemption notices are handled while it runs. One task runs at a time and
returns as many suggestions as trials can start, each aware of those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.background import task_name
from shoestring.kernel.policy import Waker
from shoestring.kernel.types import JobId
from shoestring.kernel.view import RunView
from shoestring.policies.placement.named_machines import count_of
from shoestring.policies.search.samplers.protocol import SEARCH_WAKERS, planned
from shoestring.policies.search.trimtuner.problem import MEMORY, question_now
from shoestring.policies.search.trimtuner.suggest import suggest

TASK = "suggest:"
MODELLED_S = 0.1
"""Virtual seconds per suggestion: ample for a thousand candidates and a hundred observations on one core."""
WHOLE = 1.0


@dataclass(frozen=True)
class TrimTunerSearch:
    """Runs what the optimiser suggests, each trial to max_steps on its data fraction."""

    method: str = "trimtuner"
    """Its name in `shoestring.optimizer.methods.registry`."""
    parallel: int = 4
    """At most so many trials at a time: with more, each is chosen from fewer results."""
    patience: int | None = None
    """Stop suggesting trials after so many settled without a new best."""
    wants: ClassVar[frozenset[Waker]] = SEARCH_WAKERS | {e.ThoughtReady}

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        if state.phase != "running":
            return
        if isinstance(event, e.ThoughtReady) and event.name.startswith(TASK):
            yield from _follow(state, event.answer)
            if not event.answer["suggestions"]:
                return  # nothing is left to try: the same task would return the same
        while len(state.jobs) < len(state.spec.given) and self._room(state) > 0:
            config = state.spec.given[len(state.jobs)]
            yield from _run(state, config, WHOLE, {}, "given by the user, on all of the data")
        if any(name.startswith(TASK) for name in state.background_tasks) or self._has_lost_patience(state):
            return
        left = planned(state.spec) - len(state.jobs)
        count = min(self._room(state), left)
        if count > 0:
            yield d.Think(
                name=f"{TASK}{len(state.jobs)}@{state.now!r}",
                question=task_name(suggest),
                given=question_now(state, self.method, count, left),
                modelled_s=MODELLED_S * count,
                why=f"free slots for {count} more trial{'' if count == 1 else 's'}",
            )

    def _room(self, state: RunView) -> int:
        """How many more trials could run. Where a configuration names its machines, the trial has them to itself."""
        busy = [job for job in state.jobs.values() if job.wanted]
        taken = sum(count_of(state.spec.space, job.config) for job in busy)
        return min(state.places - taken, self.parallel - len(busy))

    def _has_lost_patience(self, state: RunView) -> bool:
        """Counted from the best trial on, so a run without one continues, and so does one whose best still trains."""
        rested = list(dict.fromkeys(rest.job for rest in state.settled))
        if self.patience is None or state.best not in rested:
            return False
        return len(rested) - 1 - rested.index(state.best) >= self.patience


def _follow(state: RunView, answer: Any) -> Iterator[d.Decision]:
    """Run the suggestions. The last trial's tags keep the memory of the method."""
    suggestions = answer["suggestions"][: planned(state.spec) - len(state.jobs)]
    memory = {MEMORY: msgspec.json.encode(answer["memory"]).decode()}
    for number, suggestion in enumerate(suggestions, start=1):
        tags = memory if number == len(suggestions) else {}
        yield from _run(state, suggestion["config"], suggestion["fraction"], tags, suggestion["why"])


def _run(state: RunView, config: Any, fraction: float, tags: Any, why: str) -> Iterator[d.Decision]:
    job: JobId = state.next_job()
    spec = state.spec
    number = f"trial {len(state.jobs) + 1} of {planned(spec)}"
    yield d.AddJob(job=job, config=config, fraction=fraction, tags=tags, why=f"{number}, {why}")
    yield d.RunJob(job=job, until_step=spec.max_steps, slots=spec.slots, why=f"to max_steps ({spec.max_steps})")
