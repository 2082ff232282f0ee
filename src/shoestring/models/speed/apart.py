"""How unsure it is by how much one place is faster than another, before and after a job is timed there.

Of normal unknowns the variance after an observation does not depend on what will be observed. So what a job that still
runs will tell is known beforehand, and need not be tried a second time meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from shoestring.kernel.records import Where
from shoestring.kernel.types import Listing
from shoestring.models.speed.evidence import Evidence
from shoestring.models.speed.normal import cholesky, solved_forward, squared
from shoestring.models.speed.prior import size_of


class Apart:
    """ln(step_s) of a place is x . u with the unknowns u of `SpeedModel`: all, core gain, slot gain, those of each
    machine type and of each width. Their precision is the prior's, plus x x^T / noise for every observation."""

    def __init__(self, evidence: Evidence, places: Sequence[tuple[Listing, int]], soon: Collection[Where] = ()) -> None:
        """`soon`: where a job is being timed."""
        self._evidence = evidence
        self._listings = {**evidence.listings, **{listing.offer.machine: listing for listing, _ in places}}
        timed = evidence.wheres
        wheres = sorted({*timed, *soon, *((listing.offer.machine, slots) for listing, slots in places)})
        names = [machine for machine, _ in wheres] + [where for where in wheres if where[1] != evidence.worker]
        self._column = {name: 3 + index for index, name in enumerate(dict.fromkeys(names))}
        prior = evidence.prior
        spreads = [prior.of_all, prior.of_core_gain, prior.of_slot_gain]
        spreads += [prior.of_machines if isinstance(name, str) else prior.of_widths for name in self._column]
        precision = [[0.0] * len(spreads) for _ in spreads]
        for column, spread in enumerate(spreads):
            precision[column][column] = spread**-2
        rows = {where: self._row(where) for where in wheres}
        self._noise = evidence.spread**2 + prior.of_pairs**2 + prior.of_steps**2
        weights = {(one, other): evidence.precision(one, other) for one in timed for other in timed}
        for where in soon:
            weights[where, where] = weights.get((where, where), 0.0) + 1 / self._noise
        for (one, other), weight in weights.items():
            if weight:
                for column, value in rows[one].items():
                    for other_column, other_value in rows[other].items():
                        precision[column][other_column] += weight * value * other_value
        self._factor = cholesky(precision)

    def log_sd(self, one: Where, other: Where) -> float:
        """sd of ln(step_s of one / step_s of other) = |L^-1 (x - y)|, L L^T the precision; without what differs from
        one job to another."""
        return math.sqrt(squared(self._apart(one, other)))

    def log_sd_learned(self, one: Where, other: Where) -> float:
        """By how much one more job timed at the first place would move the expected ln of that ratio, as a standard
        deviation: v . w / sqrt(w . w + noise), v = L^-1 (x - y), w = L^-1 x. Where jobs differ much, or many were
        timed already, one more says little."""
        v, w = self._apart(one, other), solved_forward(self._factor, self._dense(one))
        return abs(sum(map(float.__mul__, v, w))) / math.sqrt(squared(w) + self._noise)

    def _apart(self, one: Where, other: Where) -> list[float]:
        x, y = self._dense(one), self._dense(other)
        return solved_forward(self._factor, [a - b for a, b in zip(x, y, strict=True)])

    def _dense(self, where: Where) -> list[float]:
        row = self._row(where)
        return [row.get(column, 0.0) for column in range(len(self._factor))]

    def _row(self, where: Where) -> dict[int, float]:
        machine, slots = where
        wider = math.log(slots / self._evidence.worker)
        size = math.log(size_of(self._listings[machine], 1)) - self._evidence.middle
        row = {0: 1.0, 1: size, 2: wider, self._column[machine]: 1.0}
        if where in self._column:
            row[self._column[where]] = wider
        return row
