"""Case: one study of a storm, in a folder of its own, and its undisturbed twin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.slowness import PATIENCE_S
from tests.storm.fake_clock import FakeClock

STUDY = Path(__file__).with_name("study.py")
MARKET = {"kind": "modern", "interruptions_per_hour": 1.0, "speedup": 200, "seed": 3}
SAME_IN_ANY_ORDER = ("random", "grid")
"""Recipes whose decisions do not depend on the order in which results arrive: the twin has the same answer."""


@dataclass(frozen=True)
class Case:
    recipe: str
    code: str
    priced: bool
    seed: int = 1
    steps: int = 9
    step_s: float = 0.05
    budget_usd: float = 100.0

    def __str__(self) -> str:
        return f"{self.recipe}, {self.code}, {'a market' if self.priced else 'free of charge'}, seed {self.seed}"

    @property
    def speedup(self) -> float:
        return float(str(MARKET["speedup"])) if self.priced else 1.0

    def settings(self, store: Path) -> dict[str, Any]:
        market = {**MARKET, "seed": self.seed} if self.priced else None
        return {**asdict(self), "store": str(store), "market": market, "save_every_s": 0.3 * self.speedup}


def cases(seed: int) -> list[Case]:
    """All of them, in an order in which the first few differ most."""
    recipes = ("random", "asha", "grid", "successive_halving", "hyperband", "asha_tpe")
    return [
        Case(recipe=recipe, code=code, priced=priced, seed=seed)
        for turn in (0, 1)
        for number, recipe in enumerate(recipes)
        for code, priced in (("command", bool((number + turn) % 2)), ("function", not (number + turn) % 2))
    ]


class Run:
    """A case in a folder, and its controller."""

    def __init__(self, case: Case, store: Path) -> None:
        store.mkdir(parents=True)
        self.case = case
        self.store = store
        self.folder = RunFolder(store / "storm")
        self.clock = FakeClock(store / "clock")
        self.controller: subprocess.Popen[bytes] | None = None
        self.exit_codes: list[int] = []
        self.slowest_start_s = 0.0
        """Until a controller had something running."""
        self.took_s = 0.0
        """From the first controller to the end, by a clock that is right."""
        self._settings = store / "settings.json"
        self._settings.write_text(json.dumps(case.settings(store)))
        self._said = (store / "said.txt").open("ab")

    @property
    def mark(self) -> str:
        """In the environment of all its processes."""
        return f"STORM_CLOCK={self.store / 'clock'}"

    @property
    def said(self) -> str:
        return (self.store / "said.txt").read_text(errors="replace")

    def is_driven(self) -> bool:
        if self.controller is not None and self.controller.poll() is not None:
            self.exit_codes.append(self.controller.returncode)
            self.controller = None
        return self.controller is not None

    def drive(self) -> None:
        """Start a controller, unless one is running."""
        if not self.is_driven():
            self.controller = subprocess.Popen(
                [sys.executable, str(STUDY), str(self._settings)],
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                env={**os.environ, **self.clock.environment()},
                start_new_session=True,
            )

    def finish(self) -> int:
        """To its end, undisturbed. Returns the exit code."""
        (self.store / "may_end").touch()
        for _ in range(2):  # the one that is running may be about to pause
            self.drive()
            assert self.controller is not None
            self.controller.wait(PATIENCE_S)
            self.took_s = self.clock.passed_s()
            self.is_driven()
            if self.exit_codes[-1] == 0:
                break
        return self.exit_codes[-1]

    def study(self) -> Study:
        return Study.in_folder(self.folder)


def twin(case: Case, store: Path) -> Study:
    """The same study, which nothing disturbs; its steps take no time."""
    run = Run(Case(**{**asdict(case), "step_s": 0.0}), store)
    if run.finish() != 0:
        raise RuntimeError(f"{case}: not even the undisturbed run ends: {run.said}")
    return run.study()
