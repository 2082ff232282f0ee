"""A storm over one case: attacks until so many signals were sent, then to its end, then the laws."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from shoestring.report.study import Study
from tests.storm.attacks import attack
from tests.storm.case import Case, Run
from tests.storm.laws import broken_laws
from tests.storm.victims import by_role, processes_of

_READY_S = 60.0


@dataclass
class Outcome:
    case: Case
    signals: int = 0
    attacks: dict[str, int] = field(default_factory=dict)
    controllers: int = 0
    broken: list[str] = field(default_factory=list)


def storm(case: Case, store: Path, twin: Study, signals: int, *, until: float = float("inf")) -> Outcome:
    """`until`: on `time.monotonic`, when to stop sending signals."""
    rng = random.Random(f"{case}")
    run, outcome = Run(case, store), Outcome(case)
    run.drive()
    until_ready(run)  # its own clock begins with it
    while outcome.signals < signals and time.monotonic() < until:
        run.drive()
        if rng.random() < 0.8:
            until_ready(run)
        time.sleep(0.3 * rng.random())
        words, sent = attack(run, rng)
        if sent:
            outcome.signals += sent
            outcome.attacks[words.split(" for ")[0]] = outcome.attacks.get(words.split(" for ")[0], 0) + 1
        if not run.is_driven() and run.exit_codes and run.exit_codes[-1] == 0:
            break  # it is over: the laws say whether that was right
    try:
        code = run.finish()
        if code != 0:
            outcome.broken.append(f"its controller ended with code {code}: {run.said[-1500:]}")
        outcome.broken += broken_laws(run, twin)
    finally:
        outcome.controllers = len(run.exit_codes)
        clear(run)
    return outcome


def until_ready(run: Run) -> None:
    """Until there is something to hit besides the controller."""
    began = time.monotonic()
    while run.is_driven() and len(by_role(run)) < 2 and time.monotonic() < began + _READY_S:
        time.sleep(0.02)
    run.slowest_start_s = max(run.slowest_start_s, time.monotonic() - began)


def clear(run: Run) -> None:
    for pid in processes_of(run):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
