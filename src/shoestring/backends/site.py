"""Site: what every backend is opened with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shoestring.kernel.spec import Code
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.worker.loading import TrainFunction
from shoestring.world.live.clock import RunClock

DEADMAN_S = 300.0
WIND_DOWN_S = 60.0
LEAST_WIND_DOWN_S = 0.25
"""Saving takes real time, however fast the market's clock runs: the least `wind_down_s` of a live run."""


@dataclass(frozen=True, kw_only=True)
class Site:
    run_dir: Path
    """Absolute. On a cluster of several machines it, `folder` and the store are the same folders on all of them."""
    code: Code
    folder: Path
    """Where user code runs. Absolute."""
    store: DirectoryStore
    clock: RunClock
    metric: str | None
    """The metric that must be reported at least once; None for jobs without one."""
    until_exit: bool = False
    """Jobs of a bag: each is done when its code ends, whatever it reports."""
    open_ended: bool = False
    """How many steps they have is unknown."""
    slots_per_worker: int = 1
    """A trial with more slots is a gang of several worker processes."""
    wind_down_s: float = WIND_DOWN_S
    """The spec's: so long before the prepaid time of its machine ends, in market time, a worker saves and stops by
    itself. Placement starts nothing later than that, or it would have to leave at once."""
    deadman_s: float = DEADMAN_S
    """Real seconds without a controller after which a worker saves and releases its machine."""
    function: TrainFunction | None = None
    """The training function itself, for a backend in the process of the caller: closures and notebooks are fine."""

    @property
    def leases(self) -> Path:
        return self.run_dir / "leases"

    @property
    def segments(self) -> Path:
        return self.run_dir / "segments"

    @property
    def heartbeat(self) -> Path:
        """A file the controller touches while it runs."""
        return self.run_dir / "heartbeat"
