"""RunSpec: the complete request for a run. Frozen, validated when made, the first thing in the journal.

A spec is complete: a controller that finds nothing but the journal can resume the run. Files and Python arguments
become a spec in `shoestring.specs`; every field below is already in plain units.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from shoestring.errors import SpecError
from shoestring.kernel.types import Config, Direction, Fact, Listing, Value
from shoestring.space.constraints import Constraint
from shoestring.space.space import Space


class Code(Fact, frozen=True, kw_only=True):
    """Where the user's code is: a function in a file or module, or a command line. Never a pickle."""

    function: str | None = None
    """"path/to/file.py:name" or "package.module:name"."""
    command: tuple[str, ...] | None = None
    """Arguments with {parameter} in them; run without a shell."""
    launch: Literal["once"] | msgspec.UnsetType = msgspec.UNSET
    """once: a command that starts its processes on the machines of its job itself, as mpirun does. UNSET, and not
    written: it is started for every worker of a gang."""


class RunSpec(Fact, frozen=True, kw_only=True):
    name: str
    kind: Literal["study", "bag"] = "study"
    code: Code = Code()
    space: Space = Space()
    given: tuple[Config, ...] = ()
    """Configurations fixed up front: all the jobs of a bag, or trials a study must include."""
    metric: str | None = None
    """What is minimized or maximized; a bag may have none."""
    direction: Direction = "minimize"
    trials: int = 1
    max_steps: int = 1
    """The last step of a trial. Of a job of a bag, which is done when its code ends, only the scale of its progress."""
    slots: int = 1
    """Slots of a job, unless the search decides otherwise."""
    fractions: tuple[float, ...] = ()
    """Data fractions that trials may train on, ascending, 1 last; empty: always all of the data."""
    constraints: tuple[Constraint, ...] = ()
    """What a trial on all of the data must satisfy to be the best: bounds on its cost, time or metrics."""
    budget_usd: float = 0.0
    deadline_s: float = 30 * 86400.0
    """Counted from the start of the run."""
    recipe: str = "asha"
    options: dict[str, Value] = {}
    """Arguments of the recipe, by name."""
    seed: int = 0
    listings: tuple[Listing, ...] = ()
    """What the run may rent."""
    max_machines: int = 4
    max_failures: int = 2
    """How often a job's own code may fail before the job is failed. Preemptions never count."""
    time_limit_s: float | None = None
    """The longest that one segment of a job may run before it counts as hung."""
    slice_s: float = 900.0
    """Leases are prepaid in slices this long and renewed at half time: a controller that stays dead for longer than
    half a slice loses its machines, and never more than one slice of money."""
    wind_down_s: float = 120.0
    """How long before the deadline everything saves and stops."""
    keep_checkpoints: int = 2
    """Per job. At least two: the previous one is kept until the new one is safe."""
    open_ended: bool | msgspec.UnsetType = msgspec.UNSET
    """True: a bag whose `max_steps` was not given. It is then 1, a whole job, whatever steps a job reports. UNSET, and
    not written, in all other runs, and in bags of version 0.1, whose functions were told to end at `max_steps`."""
    job_takes_s: float | msgspec.UnsetType = msgspec.UNSET
    """How long a job of a bag takes on four cores, by the user's estimate: what counts until one has finished."""

    def __post_init__(self) -> None:
        positive = {
            "trials": self.trials,
            "max_steps": self.max_steps,
            "slots": self.slots,
            "deadline_s": self.deadline_s,
            "max_machines": self.max_machines,
            "slice_s": self.slice_s,
        }
        for field, value in positive.items():
            if not (value > 0 and math.isfinite(value)):
                raise SpecError(f"{field}={value!r} must be a positive number")
        if not (self.budget_usd >= 0 and math.isfinite(self.budget_usd)):
            raise SpecError(f"budget_usd={self.budget_usd!r} must be zero or a positive number of dollars")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise SpecError(f"time_limit_s={self.time_limit_s!r} must be positive", hint="leave it out for no limit")
        if self.max_failures < 0:
            raise SpecError(f"max_failures={self.max_failures!r} must be zero or more")
        if self.keep_checkpoints < 2:
            raise SpecError(
                f"keep_checkpoints={self.keep_checkpoints!r} is too few",
                hint="2 is the least: the previous checkpoint is kept until the new one is safe",
            )
        parts = self.fractions
        if parts and not (parts[0] > 0 and parts[-1] == 1.0 and list(parts) == sorted(set(parts))):
            raise SpecError(
                f"fractions={list(parts)} are not data fractions that end with 1",
                hint="give them in ascending order, each above 0, the last one 1",
            )
        if self.metric == "" or (self.metric is None and self.kind == "study"):
            raise SpecError(
                f"metric={self.metric!r} names no metric",
                hint="name the metric to minimize or maximize, e.g. minimize='loss'",
            )

        if self.kind == "study" and (self.open_ended or self.job_takes_s):
            raise SpecError("open_ended and job_takes_s describe the jobs of a bag, and this is a study")
        if self.job_takes_s is not msgspec.UNSET and not (self.job_takes_s > 0 and math.isfinite(self.job_takes_s)):
            raise SpecError(f"job_takes_s={self.job_takes_s!r} must be a positive number of seconds")

    @property
    def until_exit(self) -> bool:
        """Is a job done when its code ends, and not before, whatever it reports? So it is in a bag."""
        return self.kind == "bag"

    def better(self, a: float, b: float) -> bool:
        """Is `a` a better value of the metric than `b`? NaN is worse than anything."""
        if math.isnan(a):
            return False
        if math.isnan(b):
            return True
        return a < b if self.direction == "minimize" else a > b

    def rank(self, value: float) -> tuple[bool, float]:
        """A key to sort by: best first, NaN last."""
        return math.isnan(value), value if self.direction == "minimize" else -value


def amended(spec: RunSpec, *, budget_usd: float | None, deadline_s: float | None) -> RunSpec:
    """The spec with new totals, as a user may request during a run."""
    return msgspec.structs.replace(
        spec,
        budget_usd=spec.budget_usd if budget_usd is None else budget_usd,
        deadline_s=spec.deadline_s if deadline_s is None else deadline_s,
    )
