"""The clock of a live run: market time, which may run faster than real time."""

from __future__ import annotations

from dataclasses import dataclass, field

from shoestring.worker.steady_clock import SteadyClock


@dataclass(frozen=True, slots=True)
class RunClock:
    """Market time is `started_at` at wall time `wall_at`, and `speedup` market seconds pass in a real one.

    All three are in the journal (RunStarted and the run's spec), so a restarted controller has the same clock. Wall
    time is that of `steady`, which a change of the computer's clock does not move.
    """

    started_at: float
    wall_at: float
    speedup: float = 1.0
    steady: SteadyClock = field(default_factory=SteadyClock.begin, compare=False, repr=False)

    def now(self) -> float:
        return self.at(self.steady.time())

    def wall_now(self) -> float:
        """What workers compare the times of their orders with."""
        return self.steady.time()

    def at(self, wall: float) -> float:
        """The market time of a wall time."""
        return self.started_at + (wall - self.wall_at) * self.speedup

    def wall(self, at: float) -> float:
        """The wall time of a market time."""
        return self.wall_at + (at - self.started_at) / self.speedup

    def real_s(self, market_s: float) -> float:
        """How long a stretch of market time takes."""
        return market_s / self.speedup
