"""One turn of a search on ladders: drop who is out, send on who may go, and fill what room is left with new trials."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from shoestring.kernel import decisions as d
from shoestring.kernel.types import Tags
from shoestring.kernel.view import RunView
from shoestring.policies.search.halving.rungs import Ladder
from shoestring.policies.search.samplers.protocol import AT_RANDOM, Sampler, has_room, planned, supplied

BRACKET = "bracket"


class Climb:
    """The ladders of a search and how much of `state.rests` they have read: a memo, rebuilt whenever it is missing."""

    def __init__(self, ladders: list[Ladder]) -> None:
        self.ladders = ladders
        self._read = 0

    def catch_up(self, state: RunView) -> None:
        rests = state.rests
        for order in range(self._read, len(rests)):
            rest = rests[order]
            self.ladders[int(state.jobs[rest.job].tags.get(BRACKET) or 0)].read(state, order, rest)
        self._read = len(rests)


def climb(
    state: RunView, owner: Hashable, ladders: Callable[[RunView], list[Ladder]], sampler: Sampler = AT_RANDOM
) -> Iterator[d.Decision]:
    """`owner` is the search itself: two equal searches on one state are the same search."""
    if state.phase != "running":
        return
    progress = state.memo(owner, lambda: Climb(ladders(state)))
    progress.catch_up(state)
    for ladder in progress.ladders:
        yield from ladder.cut_off(state)
    while has_room(state):
        decided = len(state.taken)
        for ladder in progress.ladders:
            yield from ladder.send_on(state)
            if len(state.taken) > decided:
                break
        else:
            if len(state.jobs) >= planned(state.spec):
                return
            yield from _new_trial(state, progress.ladders, sampler)


def _new_trial(state: RunView, ladders: list[Ladder], sampler: Sampler) -> Iterator[d.Decision]:
    spec, number, job = state.spec, len(state.jobs), state.next_job()
    bracket, last_of_bracket = 0, ladders[0].trials
    while number >= last_of_bracket:
        bracket += 1
        last_of_bracket += ladders[bracket].trials
    tags: Tags = {"rung": 0} if len(ladders) == 1 else {BRACKET: bracket, "rung": 0}
    step = ladders[bracket].first_step
    config, origin = supplied(state, number, job, sampler)
    yield d.AddJob(
        job=job,
        config=config,
        tags=tags,
        why=f"{number + 1} of {planned(spec)}, {origin}: nobody is ready to go on",
    )
    yield d.RunJob(job=job, until_step=step, slots=spec.slots, why=f"its first rung is step {step} of {spec.max_steps}")
