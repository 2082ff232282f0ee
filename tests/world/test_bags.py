"""Simulated bags: jobs that end by themselves, and what the run learns about their length."""

from __future__ import annotations

import pytest

import shoestring as ss
from shoestring.kernel import events as e
from shoestring.kernel.view import RunView
from shoestring.models.speed.progress import last_step

REPORTS = 30


def bag(**changes: object) -> ss.Bag:
    """Jobs of three hours that report thirty times, or as many times as their parameter says."""
    fields: dict[str, object] = {
        "over": {"seed": range(12)},
        "market": {"kind": "modern", "interruptions_per_hour": 0.3},
        "machines": ["m5.large", "m5.xlarge"],
        "budget": "$20",
        "deadline": "4d",
        "max_machines": 4,
        "workload": ss.Workload(
            curve=lambda _: lambda step: {"energy": -float(step)},
            seconds_per_step=lambda *_: 3 * 3600 / REPORTS,
            steps=lambda _: REPORTS,
        ),
    }
    return ss.simulate(**(fields | changes))


def ends(found: ss.Bag) -> set[str]:
    return {entry.event.cause for entry in found.entries() if isinstance(entry.event, e.SegmentEnded)}


@pytest.mark.parametrize(
    "changes",
    [{}, {"max_steps": 12}, {"recipe": "scispot"}, {"recipe": "scispot", "options": {"gangs": "2"}}],
    ids=["open-ended", "max_steps", "scispot", "gangs"],
)
def test_simulated_jobs_run_to_their_own_end_whatever_they_report(changes: dict[str, object]) -> None:
    found = bag(**changes)
    assert {row["status"] for row in found.results} == {"finished"}
    assert {row["energy"] for row in found.results} == {-float(REPORTS)}
    assert "completed" in ends(found)
    assert "reached" not in ends(found)
    view = RunView(found.state)
    assert last_step(view) == REPORTS
    for job in found.state.jobs.values():  # in steps of max_steps, however many it reported
        pace = [sum(x) for x in zip(*((p.steps, p.seconds) for p in view.paces(job).values()), strict=True)]
        assert pace[1] / pace[0] * found.spec.max_steps == pytest.approx(3 * 3600, rel=0.01)
