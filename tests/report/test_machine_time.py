"""Paid time that trained nothing is measured, from the journal: starting, restoring, saving, redone, idle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import shoestring as ss
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import MachineTime
from shoestring.report.machine_time import HeldTime, time_so_far
from shoestring.report.receipt import receipt_of
from shoestring.runs.progress_line import line_of
from shoestring.testing.story import SPEC, SPOT, Story
from shoestring.world.sim.workload import Workload


def granted(run: Story, lease: str) -> None:
    run.order(d.RequestLease(lease=lease, offer=SPOT, end_by=run.state.now + 900.0, why="the story"))
    run.happened(e.LeaseGranted(at=run.state.now, lease=lease))


def gone(run: Story, lease: str, after_s: float) -> None:
    at = run.state.now + after_s
    run.happened(e.LeaseEnded(at=at, lease=lease, cause="revoked", charged_usd=0.1))


def preempted_twice() -> Story:
    """20 s to start, 60 s to the first step, 5 s of it to save, 30 s of the next; then 25 s to restore and 40 s of the
    same step, and preempted again."""
    run = Story()
    run.begin()
    run.add("j0", until_step=9)
    granted(run, "l0")
    run.start("s0", "j0", "l0", running_since=20.0)
    run.happened(replace(run.report("j0", 1, 0.5), at=75.0))
    run.happened(replace(run.save("j0", 1), at=80.0, took_s=5.0))
    gone(run, "l0", 30.0)
    granted(run, "l1")
    run.start("s1", "j0", "l1", running_since=run.state.now + 25.0)
    gone(run, "l1", 40.0)
    return run


def test_a_step_that_was_never_finished_is_paid_time_that_trained_nothing() -> None:
    run = preempted_twice()
    receipt = receipt_of(run.state)
    assert receipt.lost_steps == 0
    assert receipt.hours * 3600 == pytest.approx(110 + 65)
    hours = {
        "trained": receipt.trained_hours,
        "starting": receipt.starting_hours,
        "restoring": receipt.restoring_hours,
        "saving": receipt.saving_hours,
        "redone": receipt.redone_hours,
        "idle": receipt.idle_hours,
    }
    assert {name: round(value * 3600) for name, value in hours.items()} == {
        "trained": 55,
        "starting": 20,
        "restoring": 25,
        "saving": 5,
        "redone": 30 + 40,
        "idle": 0,
    }
    text = str(receipt)
    assert "2 preemptions, no step lost" in text
    assert "31% of the paid time trained; 40% redone, 14% restoring, 12% starting, 3% saving" in text
    assert "31% of the paid time trained" in receipt._repr_html_()


def test_the_live_line_has_it_while_machines_are_held() -> None:
    run = Story()
    run.begin()
    run.add("j0", until_step=9)
    granted(run, "l0")
    run.start("s0", "j0", "l0", running_since=30.0)
    run.happened(replace(run.report("j0", 1, 0.5), at=40.0))
    assert time_so_far(run.state) == HeldTime(40.0, MachineTime(trained_s=10.0, starting_s=30.0))
    assert "25% of paid time trained" in line_of(run.state)


def test_a_trial_on_one_of_four_slots_uses_a_quarter_of_its_machine() -> None:
    run = Story(spec=replace(SPEC, listings=tuple(replace(listing, slots=4) for listing in SPEC.listings)))
    run.begin()
    run.add("j0", until_step=9)
    granted(run, "l0")
    run.start("s0", "j0", "l0", running_since=0.0)
    run.happened(replace(run.report("j0", 9, 0.5), at=100.0))
    run.end("j0", "reached", step=9)
    gone(run, "l0", 0.0)
    receipt = receipt_of(run.state)
    assert receipt.trained_hours * 3600 == pytest.approx(25.0)
    assert receipt.idle_hours * 3600 == pytest.approx(75.0)


def test_machines_preempted_before_every_first_report_are_seen_in_the_report() -> None:
    """A run of which no step is ever lost, because none is ever finished."""
    study = ss.simulate(
        space={"x": ss.uniform(0.0, 1.0)},
        minimize="loss",
        trials=1,
        max_steps=1,
        budget=1,
        deadline="1d",
        recipe="random",
        options={"placement": "cheapest"},
        machines=["m5.large"],
        market={"kind": "modern", "interruptions_per_hour": 3, "denial_share": 0},
        max_machines=1,
        workload=Workload(curve=lambda _: lambda _: {"loss": 1.0}, seconds_per_step=lambda *_: 20 * 3600.0),
    )
    receipt = study.receipt
    assert receipt.revocations > 20
    assert receipt.lost_steps == 0
    assert receipt.trained_hours == 0.0
    assert receipt.redone_hours > 0.8 * receipt.hours
    assert "0% of the paid time trained" in str(receipt)
