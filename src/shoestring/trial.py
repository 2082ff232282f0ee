"""Trial: what a training function gets. The few lines that make it revocable are `steps`, `report` and `save`.

    def train(trial):
        net = Net(lr=trial["lr"])
        if trial.checkpoint:                       # a folder, when this trial has run before, here or elsewhere
            net.load(trial.checkpoint / "net.npz")
        for step in trial.steps():                 # 1, 2, ...; resumes where it left off
            loss = net.train_one_epoch()
            trial.report(loss=loss)
            with trial.save() as folder:           # None, unless a save is due
                if folder:
                    net.store(folder / "net.npz")

`report` comes before `save`, and `save` is the last thing in the body: what it stores is the state *after* the step.
All three are optional. Code that never saves starts again from step 1 after a preemption; code that uses none of them
is done when it returns.
"""

from __future__ import annotations

import operator
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat

from shoestring.errors import ShoestringError
from shoestring.kernel.types import Config, JobId, Metrics, Value
from shoestring.worker.subsampling import matching, smaller_fraction, subsample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LARGEST_REPORT_BYTES = 1_000_000
_BYTES_OF_A_NUMBER = 25
"""At most, with its punctuation."""


class ReportError(ShoestringError, TypeError):
    """A report that is not made of numbers, or too large."""


class TrialHost(Protocol):
    """What a trial reports and saves to: a worker process, or the run itself when inline. Not for user code."""

    def leaving(self) -> bool:
        """Is it time to save and stop: a notice, a halt, the end of the lease?"""
        ...

    def save_due(self, step: int) -> bool: ...

    def reported(self, step: int, metrics: Metrics) -> None: ...

    def snapshot(self, step: int, fraction: float, metrics: Metrics) -> None:
        """The metrics on a smaller data fraction than the trial's own."""
        ...

    def folder(self) -> Path:
        """A new empty folder to write a checkpoint to."""
        ...

    def saved(self, step: int, folder: Path, began: float) -> None:
        """Store the folder and report it; after this it is visible, and whole. `began`: monotonic, before writing."""
        ...


class Trial(Mapping[str, Value]):
    """One configuration being trained: `trial["lr"]`, reports and checkpoints."""

    def __init__(
        self,
        *,
        job: JobId,
        config: Config,
        until_step: int | None,
        host: TrialHost,
        step: int = 0,
        checkpoint: Path | None = None,
        fraction: float = 1.0,
        fractions: tuple[float, ...] = (),
        seed: int = 0,
        slots: int = 1,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.id = job
        self.config = config
        self.until_step = until_step
        """The target step. None in a bag without `max_steps`: the code itself knows when it is done."""
        self.step = step
        """The last step finished."""
        self.checkpoint = checkpoint
        """The folder of the latest checkpoint, if there is one; read it, do not write to it."""
        self.fraction = fraction
        """The data fraction to train on; `subsample` draws it."""
        self.fractions = fractions
        """Smaller ones, ascending, to report snapshots of during training: `report(loss=..., fraction=1/16)`. Without
        those that this trial reported before it was interrupted."""
        self.seed = seed
        """The run's: the same number in all its trials."""
        self.slots = slots
        """The trial's share of its machines (GPUs, say), all workers together."""
        self.rank = rank
        """Which of the trial's workers this is. Reports and saves of ranks other than 0 have no effect: all ranks can
        run the same code."""
        self.world_size = world_size
        """How many workers train this trial together. It may differ after a resume."""
        self.metric_names: set[str] = set()
        """Every metric reported so far in this segment."""
        self.left = False
        """`steps()` ended before `until_step`, because it was time to leave the machine."""
        self._host = host
        self._under_way: int | None = None
        self._pending: Metrics | None = None
        self._looping = False
        """`steps()` counts; else every report without a step is the next step."""
        self._save_skipped = False
        """`save()` was called in this step, but no save was due then."""

    @property
    def number(self) -> int:
        """The trial's number in the study, from 0."""
        digits = self.id[len(self.id.rstrip("0123456789")) :]
        return int(digits) if digits else 0

    def __getitem__(self, name: str) -> Value:
        try:
            return self.config[name]
        except KeyError:
            raise KeyError(f"no parameter {name!r}; this trial has: {', '.join(self.config) or 'none'}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.config)

    def __len__(self) -> int:
        return len(self.config)

    def __bool__(self) -> bool:
        return True  # a trial without parameters is still a trial

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.config.items())
        target = "" if self.until_step is None else f" of {self.until_step}"
        return f"Trial({self.id}: {values}; step {self.step}{target})"

    def steps(self) -> Iterator[int]:
        """The steps still to do. Ends at `until_step`, or when it is time to leave the machine. Without an `until_step`
        the code leaves the loop itself."""
        host = self._host
        self._looping = True
        for step in count(self.step + 1) if self.until_step is None else range(self.step + 1, self.until_step + 1):
            # An order to leave that came just after `save()` was called gets one more step, whose save is then due:
            # leaving now would lose this step.
            if host.leaving() and not self._save_skipped:
                self.left = True
                return
            self._save_skipped = False
            self._under_way = step
            yield step
            self.flush()
            self._under_way = None
            self.step = step

    def subsample(self, n: int, fraction: float | None = None) -> NDArray[np.int64]:
        """Which of `n` samples to train on: this trial's data fraction, in an order fixed by the run's seed.

        A smaller `fraction` gives the first of them: fractions are nested, and the same in all trials and restarts.
        """
        smaller = None if fraction is None else smaller_fraction(self.fraction, fraction)
        return subsample(n, self.fraction if smaller is None else smaller, self.seed)

    def report(
        self, *, step: int | None = None, fraction: SupportsFloat | None = None, **metrics: SupportsFloat
    ) -> None:
        """Report metrics: numbers by name, for the current step. NaN and infinities are recognised as such.

        With a `fraction` below the trial's own, they are a snapshot: the metrics of a model trained on that fraction,
        which the trial has just completed, a result of its own with the time it took until now. Only those in
        `fractions` are recorded, and the first for each of them counts.
        """
        if not metrics:
            raise ReportError("report() names no metric", hint="for instance trial.report(loss=0.2)")
        values: Any = metrics  # each value is checked and replaced in place: reports are most of the traffic
        for name, value in values.items():
            if type(value) is not float:
                values[name] = as_number(name, value)
        check_size(values)
        if fraction is not None:
            smaller = smaller_fraction(self.fraction, as_number("fraction", fraction))
            if smaller is not None:
                self._report_snapshot(smaller, step, values)
                return
        self.metric_names.update(values)
        if step is None and self._under_way is not None:
            if self._pending is None:
                self._pending = values
            else:
                self._pending.update(values)
                check_size(self._pending)
            return
        counted = self.step if self._looping else self.step + 1
        step = counted if step is None else as_step(step)
        self.step = max(self.step, step)
        self._host.reported(step, values)

    def _report_snapshot(self, fraction: float, step: int | None, values: Metrics) -> None:
        """At once: the time until now is part of the result."""
        wanted = matching(self.fractions, fraction)
        if wanted is not None:
            under_way = self.step if self._under_way is None else self._under_way
            self._host.snapshot(under_way if step is None else as_step(step), wanted, values)

    def save(self) -> AbstractContextManager[Path | None]:
        """A folder to store the state in, or None when no save is due (which costs next to nothing: call it each step).

        What is in the folder when the block ends becomes a checkpoint, whole or not at all; an exception in the block,
        or an empty folder, leaves none.
        """
        step = self.step if self._under_way is None else self._under_way
        if not self._host.save_due(step):
            self._save_skipped = True
            return _NOT_DUE
        return self._saving(step)

    @contextmanager
    def _saving(self, step: int) -> Iterator[Path]:
        self.flush()  # a report lost while its step is saved would be lost for good: that step is not trained again
        began = time.monotonic()
        folder = self._host.folder()
        try:
            yield folder
            if any(folder.iterdir()):
                self._host.saved(step, folder, began)
                self.step = max(self.step, step)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def flush(self) -> None:
        """Report the metrics of the current step. Several reports of one step are merged into one."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            step = self.step if self._under_way is None else self._under_way
            self.step = step
            self._host.reported(step, pending)

    def close(self) -> None:
        """User code has returned. A step it left in the middle counts if it was reported or saved."""
        self.flush()
        self._under_way = None


class _NotDue(AbstractContextManager[None]):
    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None


_NOT_DUE = _NotDue()


def check_size(metrics: Mapping[str, float]) -> None:
    """Every report is kept for ever, and read by the controller within a moment: there is an end to its size."""
    size = sum(map(len, metrics)) + _BYTES_OF_A_NUMBER * len(metrics)
    if size > LARGEST_REPORT_BYTES:
        raise ReportError(
            f"a report of {len(metrics):,} metrics takes {size / 1e6:.1f} MB, more than"
            f" {LARGEST_REPORT_BYTES / 1e6:.0f} MB",
            hint="report a few numbers of each step, and save the others in a file",
        )


def as_number(name: str, value: object) -> float:
    """A metric as a float; NumPy scalars and zero-dimensional arrays are numbers too, strings are not."""
    if not isinstance(value, str | bytes | bytearray) and not getattr(value, "ndim", 0):
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            pass
    shown = repr(value)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    raise ReportError(
        f"metric {name!r} is {shown} ({type(value).__name__}), not a number",
        hint="report numbers only, e.g. float(value)",
    )


def as_step(step: object) -> int:
    """A step number: any integer type; True and 3.5 are errors."""
    if not isinstance(step, bool):
        try:
            number = operator.index(step)  # type: ignore[arg-type]
        except TypeError:
            pass
        else:
            if number >= 0:
                return number
    raise ReportError(f"step={step!r} is not a whole number from 0 up")
