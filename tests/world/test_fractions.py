"""Simulated trials on data fractions, their snapshots of smaller fractions, and tables of measured runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoestring as ss
from shoestring.controller import run
from shoestring.errors import DataError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import events as e
from shoestring.kernel.history import RecordedEvents
from shoestring.report.study import Study
from shoestring.runs.sim_workload import recorded
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.measured_table import MeasuredRun, table_workload
from shoestring.world.sim.workload import SnapshotAt
from shoestring.world.sim.world import SimWorld
from tests import fractions as parts
from tests.world.runs import events_of, opening, simulate, simulated_world
from tests.world.scenes import SPOT, Scene, dies_at_age, ended, listing, market, reported, saved, started, workload

FRACTIONS = (1 / 16, 1 / 4, 1.0)


def snapshot(at: float, fraction: float, loss: float, *, step: int = 1) -> e.SnapshotReported:
    return e.SnapshotReported(at=at, segment="s0", job="j0", step=step, fraction=fraction, metrics={"loss": loss})


# -- fractions ---------------------------------------------------------------------------------------------------------
def test_a_trial_on_a_data_fraction_takes_that_share_of_the_time_and_reports_the_same():
    scene = Scene()
    scene.train(until_step=2, fraction=0.25)
    assert scene.until(e.SegmentEnded) == [
        started(60.0),
        reported(62.5, 1),
        reported(65.0, 2),
        saved(71.0, 2),
        ended(71.0, 2, "reached"),
    ]


def test_a_workload_may_define_its_own_behaviour_on_a_fraction():
    def on(fraction):
        return workload(
            seconds_per_step=lambda *_: 2 + 8 * fraction, curve=lambda _: lambda _: {"loss": 2.0}, checkpoint_gb=None
        )

    scene = Scene(on_fraction=on)
    scene.train(until_step=1, fraction=0.5)
    step = scene.until(e.SegmentEnded)[1]
    assert (step.at, step.metrics) == (66.0, {"loss": 2.0})


def test_on_fraction_is_not_called_for_the_full_data():
    assert workload(on_fraction=lambda _: None).on(1.0).seconds_per_step({}, listing(SPOT), 1) == 10.0


# -- snapshots ---------------------------------------------------------------------------------------------------------
def with_snapshots(_config):
    return [SnapshotAt(0.125, 1 / 8, {"loss": 0.8}), SnapshotAt(1.5, 1 / 4, {"loss": 0.5})]


def test_requested_snapshots_are_reported_between_steps():
    scene = Scene(snapshots=with_snapshots)
    scene.train(until_step=2, fractions=(1 / 8, 1 / 4))
    assert scene.until(e.SegmentEnded) == [
        started(60.0),
        snapshot(61.25, 1 / 8, 0.8),
        reported(70.0, 1),
        snapshot(75.0, 1 / 4, 0.5, step=2),
        reported(80.0, 2),
        saved(86.0, 2),
        ended(86.0, 2, "reached"),
    ]


@pytest.mark.parametrize(("requested", "expected"), [((), []), ((1 / 4,), [1 / 4]), ((1 / 2,), [])])
def test_only_requested_snapshots_are_reported(requested, expected):
    scene = Scene(snapshots=with_snapshots)
    scene.train(until_step=2, fractions=requested)
    assert [x.fraction for x in scene.until(e.SegmentEnded) if isinstance(x, e.SnapshotReported)] == expected


def test_a_snapshot_comes_later_in_steps_on_a_smaller_fraction():
    scene = Scene(snapshots=with_snapshots)
    scene.train(until_step=2, fraction=1 / 2, fractions=(1 / 8,))
    assert scene.until(e.JobReported) == [started(60.0), snapshot(61.25, 1 / 8, 0.8), reported(65.0, 1)]


def without_notice(age_s: float):
    return market(dies_at_age(age_s), listings=[listing(SPOT, notice_s=0.0)])


@pytest.mark.parametrize(("age_s", "expected"), [(36.0, [1 / 8, 1 / 4]), (34.0, [1 / 8]), (21.0, [])])
def test_an_ended_machine_reports_no_snapshots(age_s, expected):
    """Training begins 20 s after the grant; the snapshot of a quarter comes 15 s later."""
    scene = Scene(without_notice(age_s), snapshots=with_snapshots, checkpoint_gb=None)
    scene.train(until_step=9, fractions=(1 / 8, 1 / 4))
    assert [x.fraction for x in scene.until(e.LeaseEnded) if isinstance(x, e.SnapshotReported)] == expected


# -- tables ------------------------------------------------------------------------------------------------------------
RUNS = [
    MeasuredRun(
        config={"x": x, "machine": "small"},
        fraction=fraction,
        seconds=100 * fraction + 5 * x,
        metrics={"loss": x / fraction},
    )
    for x in (1, 2)
    for fraction in FRACTIONS
]


def table_world(provider=None) -> SimWorld:
    return SimWorld(provider or market(), table_workload(RUNS), start=0.0)


def test_a_trial_behaves_like_the_run_in_the_table():
    state, entries = simulate(table_world(), parts.policies(x=2, machine="small"), fractions=FRACTIONS, max_steps=1)
    assert [list(job.values) for job in state.jobs.values()] == [[32.0], [8.0], [2.0]]
    assert [job.seconds_per_step for job in state.jobs.values()] == pytest.approx([16.25, 35.0, 110.0])
    assert len(events_of(entries, e.JobReported)) == 3


def test_a_trial_reports_runs_on_smaller_fractions_after_their_time():
    state, _ = simulate(table_world(), parts.policies(x=2, machine="small"), fractions=FRACTIONS, max_steps=1)
    smallest, middle, full = state.jobs.values()
    assert smallest.snapshots == {}
    assert {fraction: (x.metrics, pytest.approx(x.seconds)) for fraction, x in middle.snapshots.items()} == {
        1 / 16: ({"loss": 32.0}, 16.25)
    }
    assert {fraction: (x.metrics, pytest.approx(x.seconds)) for fraction, x in full.snapshots.items()} == {
        1 / 16: ({"loss": 32.0}, 16.25),
        1 / 4: ({"loss": 8.0}, 35.0),
    }


def test_after_a_revocation_a_trial_starts_again_and_keeps_its_snapshots():
    """Machines end 90 s after their grant, 70 s into the training: one trial needs 110 s, and never finishes."""
    world = table_world(without_notice(90.0))
    fields = {"fractions": FRACTIONS, "max_steps": 1, "deadline_s": 900.0}
    state, entries = simulate(world, parts.policies(x=2, machine="small"), **fields)
    full = state.jobs["j2"]
    assert full.revocations > 1
    assert not full.values
    assert {fraction: x.seconds for fraction, x in full.snapshots.items()} == pytest.approx(
        {1 / 16: 16.25, 1 / 4: 35.0}
    )
    assert len([x for x in events_of(entries, e.SnapshotReported) if x.job == "j2"]) == 2, (
        "reported again, though not requested"
    )


def test_a_table_of_machines_and_parameters_is_run_on_the_machines_it_names():
    """The time is the row's: the simulator's own rule would give another speed for the larger machine."""
    machines, seconds = ("m6i.large", "m6i.4xlarge"), {"m6i.large": 900.0, "m6i.4xlarge": 700.0}
    runs = [
        MeasuredRun(
            config={"x": x, "machine": machine, "count": count}, seconds=seconds[machine] / count, metrics={"loss": x}
        )
        for x in (1, 2)
        for machine in machines
        for count in (1, 2)
    ]
    study = ss.simulate(
        workload=table_workload(runs),
        space={"x": [1, 2], "machine": ss.machine_type(*machines), "count": ss.machine_count(1, 2)},
        minimize="loss",
        recipe="grid",
        trials=8,
        max_steps=1,
        budget="$50",
        deadline="1d",
        market="modern",
    )
    assert [row.status for row in study.trials] == ["finished"] * 8
    for job in study.state.jobs.values():
        assert job.seconds_per_step == pytest.approx(seconds[job.config["machine"]] / job.config["count"])
        assert {machine for machine, _ in job.paces} == {job.config["machine"]}


def test_parameters_that_are_not_in_the_table_are_ignored():
    curve = table_workload(RUNS).curve({"zone": "a", "x": 1, "machine": "small"})
    assert curve(1) == {"loss": 1.0}


def test_a_run_that_is_not_in_the_table_is_an_error_with_the_known_fractions():
    with pytest.raises(DataError, match=r"no run of x=3, machine=small on 1 of the data") as refusal:
        table_workload(RUNS).curve({"x": 3, "machine": "small"})
    assert "measured ones" in refusal.value.hint
    with pytest.raises(DataError, match=r"on 0\.5 of the data") as refusal:
        table_workload(RUNS).on(0.5).curve({"x": 1, "machine": "small"})
    assert refusal.value.hint == "there are runs of it on 0.0625, 0.25, 1"


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "a table without runs"),
        ([RUNS[0], RUNS[0]], "the table has two runs of x=1, machine=small on 0.0625 of the data"),
        ([RUNS[0], MeasuredRun(config={"y": 1}, seconds=1.0, metrics={})], "different parameters: x, machine and y"),
        ([MeasuredRun(config={}, fraction=1.5, seconds=1.0, metrics={})], "is not possible"),
        ([MeasuredRun(config={}, seconds=0.0, metrics={})], "is not possible"),
        ([MeasuredRun(config={}, seconds=float("nan"), metrics={})], "is not possible"),
    ],
)
def test_an_invalid_table_is_refused_with_a_hint(runs, message):
    with pytest.raises(DataError, match=message) as refusal:
        table_workload(runs)
    assert refusal.value.hint


# -- whole runs --------------------------------------------------------------------------------------------------------
def restless_world() -> SimWorld:
    return simulated_world(
        market(dies_at_age(500.0)), snapshots=lambda _: [SnapshotAt(8 * x, x, {"loss": x}) for x in (0.25,)]
    )


def test_a_run_with_fractions_and_snapshots_is_simulated_again():
    policies, fields = parts.policies(x=0.5), {"fractions": FRACTIONS, "max_steps": 12}
    state, record = simulate(restless_world(), policies, **fields)
    assert state.jobs["j2"].revocations
    assert list(state.jobs["j2"].snapshots) == [0.25]
    for known in range(1, len(record), 7):
        past, world = RecordedEvents(), restless_world()
        for entry in record[:known]:
            past.replayed(entry)
        world.attach(past)
        for entry in record[known:]:
            assert world.next_event() == entry.event
            for decision in entry.decisions:
                world.carry_out(decision)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40))
def test_a_run_ends_the_same_after_a_crash_at_any_entry(known):
    policies, start = parts.policies(x=0.5), opening(restless_world(), fractions=FRACTIONS, max_steps=6)
    whole = MemoryJournal()
    run(restless_world(), whole, policies, BudgetAndDeadline(), first=[start])
    record = list(whole.read())
    crashed = MemoryJournal()
    for entry in record[: min(known, len(record) - 1)]:
        crashed.append(entry, wait=True)
    run(restless_world(), crashed, policies, BudgetAndDeadline())
    assert crashed.dump() == whole.dump()


# -- an earlier run ----------------------------------------------------------------------------------------------------
def test_trials_of_an_earlier_run_stand_for_trials_on_the_nearest_fraction():
    def on(fraction):
        return workload(curve=lambda _: lambda _: {"loss": fraction}, seconds_per_step=lambda *_: 10 + 90 * fraction)

    world = simulated_world(seconds_per_step=lambda *_: 100.0, on_fraction=on)
    _, record = simulate(world, parts.policies(x=0.5), fractions=FRACTIONS, max_steps=4)
    study = Study(lambda: record)
    again = recorded(study, study.spec)
    machine = listing(SPOT)
    assert again.seconds_per_step({"x": 0.1}, machine, 1) == pytest.approx(100.0)
    quarter, half = again.on(1 / 4), again.on(0.4)
    assert quarter.seconds_per_step({"x": 0.1}, machine, 1) == pytest.approx(32.5)
    assert quarter.curve({"x": 0.1})(3) == half.curve({"x": 0.1})(3) == {"loss": 1 / 4}
    assert half.seconds_per_step({"x": 0.1}, machine, 1) == pytest.approx(32.5 * 0.4 / 0.25)
    given_seconds = recorded(study, study.spec, seconds_per_step=40.0)
    assert given_seconds.on(1 / 4).seconds_per_step({"x": 0.1}, machine, 1) == pytest.approx(10.0)


def test_the_pace_of_trials_that_report_once_is_that_of_their_training():
    _, record = simulate(table_world(), parts.policies(x=2, machine="small"), fractions=FRACTIONS, max_steps=1)
    study = Study(lambda: record)
    assert recorded(study, study.spec).on(1 / 4).seconds_per_step({}, listing(SPOT), 1) == pytest.approx(35.0)
