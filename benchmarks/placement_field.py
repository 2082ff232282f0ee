"""The contestants of the placement benchmark by name, for single jobs and for the trials of a study alike."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.placement_contestants import Slack, greedy, on_demand_only, uniform_progress
from benchmarks.placement_world import Chooser

CONTESTANTS: dict[str, Callable[[], Chooser]] = {
    "on demand": lambda: on_demand_only,
    "greedy": lambda: greedy,
    "uniform progress": lambda: uniform_progress,
    "slack": Slack,
}
"""Makes the policy of one job."""
