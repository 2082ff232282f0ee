"""Which untried machines are worth a try: by expected improvement, over the jobs that are left to gain by it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shoestring.kernel.records import Where
from shoestring.kernel.view import RunView
from shoestring.models.speed.job_length import JobLengths
from shoestring.policies.placement.scispot.candidates import Candidate, jobs_left

if TYPE_CHECKING:
    from shoestring.models.lifetimes.job_cost import Prospect
    from shoestring.models.speed.apart import Apart


def with_hopes(state: RunView, found: Sequence[Candidate], being_tried: Collection[Where]) -> list[Prospect]:
    """Prospects with how much a try may change what is expected of them: all that is unknown where no job was timed,
    and later what one more job would tell. What is being tried will be known soon, so nothing more is hoped for; the
    cheapest is in use, so it is being tried too. Of each machine type the narrowest untimed place may surprise: it
    costs least to try, and tells about the wider ones."""
    speeds = JobLengths.of(state).speeds
    best = min(found, key=lambda x: x.prospect.expected_usd).place.where
    soon = frozenset({best, *being_tried})
    narrowest: dict[str, int] = {}
    for machine, slots in (x.place.where for x in found if not x.prospect.tried and x.place.where not in soon):
        narrowest[machine] = min(slots, narrowest.get(machine, slots))
    places = tuple((x.place.listing, x.place.slots) for x in found)
    kept: dict[object, Apart] = state.memo("apart", dict)
    key = speeds.version, places, soon
    if key not in kept:
        kept.clear()
        kept[key] = speeds.apart(places, soon)

    def hope(it: Candidate) -> float:
        machine, slots = where = it.place.where
        if where in soon or (not it.prospect.tried and slots != narrowest[machine]):
            return 0.0
        return kept[key].log_sd_learned(where, best) if it.prospect.tried else kept[key].log_sd(where, best)

    return [replace(it.prospect, log_sd=hope(it)) for it in found]


def jobs_after_a_try(state: RunView, found: Sequence[Candidate]) -> list[float]:
    """For each candidate: jobs that begin after one that begins there now is done. The others keep to the cheapest
    until then, as many at once as may be rented."""
    best = min(found, key=lambda x: x.prospect.expected_usd)
    jobs = jobs_left(state) - state.count("running") - 1
    at_once = max(1, state.spec.max_machines * best.place.sharing // best.place.count)
    return [max(0.0, jobs - at_once * it.work_s / best.work_s) for it in found]
