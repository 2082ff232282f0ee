from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shoestring as ss
from tests.server.serving import Serving

STUDY: dict[str, Any] = {
    "name": "study",
    "space": {"lr": {"log": [1e-4, 1]}},
    "minimize": "loss",
    "trials": 8,
    "max_steps": 20,
    "budget": 20,
    "deadline": "6h",
    "market": {"kind": "modern", "interruptions_per_hour": 1},
}


@pytest.fixture
def unstarted(tmp_path: Path) -> Iterator[Serving]:
    """A service for one test, with an empty store, which the test starts as it needs it."""
    server = Serving(tmp_path)
    yield server
    server.end()


@pytest.fixture
def serving(unstarted: Serving) -> Serving:
    """The same, started."""
    unstarted.start()
    return unstarted


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One service for many tests. It has `study-simulated`, which is over, and starts nothing."""
    server = Serving(tmp_path_factory.mktemp("shared"))
    ss.simulate(store=server.store, **STUDY)
    server.start("--max-concurrent-runs", "0")
    yield server
    server.end()
