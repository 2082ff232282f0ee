"""What a storm does to a run: signals to one or two of its processes, and changes of its clock."""

from __future__ import annotations

import os
import random
import signal
import time

from tests.storm.case import Run
from tests.storm.fake_clock import JUMPS_S
from tests.storm.victims import ROLES, by_role

PAIRS = (
    ("supervisor", "player"),
    ("controller", "supervisor"),
    ("controller", "player"),
    ("player", "program"),
    ("supervisor", "program"),
)
_STOPPED_S = 0.4


def attack(run: Run, rng: random.Random) -> tuple[str, int]:
    """One attack, in words, and how many signals it took; 0 if there was no such victim."""
    kind = rng.choices(("kill", "kill two", "term", "stop", "clock"), (30, 30, 12, 10, 18))[0]
    if kind == "clock":
        return _change_clock(run, rng), 1
    found = by_role(run)
    segments = [roles for segment, roles in found.items() if segment]
    roles = {**found.get("", {}), **(rng.choice(segments) if segments else {})}
    wanted = rng.choice(PAIRS) if kind == "kill two" else (rng.choice(ROLES),)
    victims = [roles[role] for role in wanted if role in roles]
    if len(victims) < len(wanted):
        return "", 0
    number = {"term": signal.SIGTERM, "stop": signal.SIGSTOP}.get(kind, signal.SIGKILL)
    _send(victims, number)
    if kind == "stop":
        time.sleep(_STOPPED_S * rng.random())
        _send(victims, signal.SIGCONT)
    return f"{number.name} to {' and '.join(wanted)}", len(victims)


def _send(victims: list[int], number: signal.Signals) -> None:
    for pid in victims:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it died with the one before it, or has just ended


def _change_clock(run: Run, rng: random.Random) -> str:
    if rng.random() < 0.2:
        slept_s = rng.uniform(5.0, 60.0)
        run.clock.sleep(slept_s)
        return f"suspended for {slept_s:.0f} s"
    jump = rng.choice(JUMPS_S)
    run.clock.jump(jump)
    return f"clock set by {jump:+.0f} s"
