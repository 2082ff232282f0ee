"""The simulator's model of user code: how fast it trains, what it reports, how large its checkpoints are.

A workload is a table or a function, never a hidden fitted model: the simulated trials do exactly what it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from shoestring.errors import SpecError
from shoestring.kernel.types import Config, Listing, Metrics, SegmentId

Trouble = Literal["fail", "hang"]
CurveOf = Callable[[Config], "Curve"]
Curve = Callable[[int], Metrics]
SecondsPerStep = Callable[[Config, Listing, int], float]
TroubleOf = Callable[[Config, SegmentId, int], Trouble | None]


class SnapshotAt(NamedTuple):
    """A result on a smaller data fraction than its own, which a trial reports during training."""

    after_steps: float
    """From the start: 0.25 is a quarter into the first step."""
    fraction: float
    metrics: Metrics


@dataclass(frozen=True)
class Workload:
    """How simulated trials behave."""

    curve: CurveOf
    """For a configuration, what is reported at each step (from 1)."""
    seconds_per_step: SecondsPerStep
    """For a configuration, a machine type and a number of slots."""
    checkpoint_gb: float | None = 0.05
    """None: user code that never saves, and starts over after every interruption."""
    trouble: TroubleOf | None = None
    """After a step of a segment: its code fails, hangs, or neither."""
    on_fraction: Callable[[float], Workload] | None = None
    """The same trials on a data fraction. Without it their steps take that share of the time, and they report the same
    metrics as on all of the data."""
    steps: Callable[[Config], int] | None = None
    """Code that ends by itself, as that of a job of a bag does: after how many steps. None: at its target step."""
    snapshots: Callable[[Config], Sequence[SnapshotAt]] | None = None
    """The snapshots of smaller data fractions that a trial can report; it reports those the run requests."""

    def on(self, fraction: float) -> Workload:
        """The same trials on this data fraction."""
        if fraction == 1.0:
            return self
        if self.on_fraction is not None:
            return self.on_fraction(fraction)
        whole, snapshots = self.seconds_per_step, self.snapshots
        return replace(
            self,
            seconds_per_step=lambda config, listing, slots: fraction * whole(config, listing, slots),
            snapshots=None if snapshots is None else lambda config: [_rescaled(x, fraction) for x in snapshots(config)],
        )


def _rescaled(snapshot: SnapshotAt, fraction: float) -> SnapshotAt:
    """The same fraction is a larger share of a smaller data set, so it comes later in steps."""
    return snapshot._replace(after_steps=snapshot.after_steps / fraction)


@dataclass(frozen=True)
class Latencies:
    """Every delay of the simulated world that is not the provider's."""

    start_s: float = 20.0
    """From the order to start until user code runs: image, process, imports."""
    save_gb_per_s: float = 0.1
    restore_gb_per_s: float = 0.2
    save_overhead_s: float = 1.0
    restore_overhead_s: float = 1.0
    release_s: float = 2.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name.endswith("_gb_per_s") and not value > 0:
                raise SpecError(f"{name}={value!r} must be more than 0")
            if not (value >= 0 and (math.isfinite(value) or name.endswith("_gb_per_s"))):
                raise SpecError(f"{name}={value!r} must be zero or a positive number of seconds")

    def save_s(self, gb: float) -> float:
        return self.save_overhead_s + gb / self.save_gb_per_s

    def restore_s(self, gb: float) -> float:
        return self.restore_overhead_s + gb / self.restore_gb_per_s


@dataclass(frozen=True)
class SublinearSpeed:
    """Seconds per step that fall with cores and slots, but less than in proportion."""

    base_s: float
    """One slot of a machine with `base_vcpus` cores a slot."""
    base_vcpus: float = 4.0
    core_exponent: float = 0.7
    slot_exponent: float = 0.8

    def __call__(self, config: Config, listing: Listing, slots: int) -> float:  # noqa: ARG002
        cores = listing.vcpus / listing.slots
        speed: float = (cores / self.base_vcpus) ** self.core_exponent * slots**self.slot_exponent
        return self.base_s / speed


@dataclass(frozen=True)
class CurveTable:
    """Recorded curves: a trial replays that of the nearest configuration. After its last step a curve is constant."""

    metric: str
    points: Sequence[Sequence[float]]
    """Encoded configurations, as `Space.encode` gives them."""
    curves: Sequence[Sequence[tuple[int, float]]]
    """(step, value) of each, ascending."""
    encode: Callable[[Config], Sequence[float]]
    _found: dict[tuple[float, ...], Curve] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.points or len(self.points) != len(self.curves) or not all(self.curves):
            raise SpecError(
                f"a table of {len(self.points)} configurations and {len(self.curves)} curves cannot be simulated",
                hint="give at least one configuration, and one curve with at least one value for each",
            )
        if len({len(point) for point in self.points}) > 1:
            raise SpecError(
                "the configurations of a table of curves have different numbers of parameters",
                hint="encode all of them with the same space",
            )
        for number, curve in enumerate(self.curves):
            if any(later[0] <= earlier[0] for earlier, later in pairwise(curve)):
                raise SpecError(f"the steps of curve {number} do not ascend", hint="sort its values by step")

    def __call__(self, config: Config) -> Curve:
        x = tuple(self.encode(config))
        curve = self._found.get(x)
        if curve is None:
            nearest = min(range(len(self.points)), key=lambda i: _distance(x, self.points[i]))
            curve = self._found[x] = _replay(self.metric, self.curves[nearest])
        return curve


def _distance(a: Sequence[float], b: Sequence[float]) -> float:
    return sum((u - v) ** 2 for u, v in zip(a, b, strict=True))


def _replay(metric: str, curve: Sequence[tuple[int, float]]) -> Curve:
    values: Mapping[int, float] = dict(curve)
    first, last = curve[0], curve[-1]

    def at(step: int) -> Metrics:
        if step in values:
            return {metric: values[step]}
        if step > last[0]:
            return {metric: last[1]}
        before = [value for known, value in curve if known <= step]
        return {metric: before[-1] if before else first[1]}

    return at
