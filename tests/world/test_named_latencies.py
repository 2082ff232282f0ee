"""Every latency is a named parameter, and each changes exactly the stretch of time it is named after."""

import pytest

from shoestring.errors import SpecError
from shoestring.kernel import events as e
from shoestring.world.sim.workload import Latencies
from tests.world.scenes import SPOT, Scene, checkpoint, dies_at_age, listing, market

BY_HAND = {
    "request to grant": 40.0,
    "request to denial": 5.0,
    "order to running": 20.0,
    "order to running from a checkpoint": 23.5,
    "one step": 10.0,
    "one save": 6.0,
    "release to gone": 2.0,
    "notice to gone": 120.0,
}


def stretches(latencies: Latencies, *, notice_s=120.0, step_s=10.0, checkpoint_gb=0.5, **service) -> dict[str, float]:
    """How long everything takes in one small life of a machine, measured from its events."""
    of_workload = {"seconds_per_step": lambda *_: step_s, "checkpoint_gb": checkpoint_gb}
    scene = Scene(market(**service), latencies, **of_workload)
    scene.rent()
    granted = scene.next()
    scene.start(until_step=1)
    running, report, save, reached = scene.until(e.SegmentEnded)
    scene.start("s1", until_step=2, resume_from=checkpoint(1))
    restored = scene.next()
    scene.until(e.SegmentEnded)
    asked_at = scene.world.now
    scene.release()
    released = scene.next()

    denied = Scene(market(denial_share=1.0, **service), latencies)
    denied.rent()

    doomed = Scene(market(dies_at_age(1000.0), listings=[listing(SPOT, notice_s=notice_s)]))
    doomed.rent()
    notice = doomed.first(e.RevocationNoticed)

    return {
        "request to grant": granted.at,
        "request to denial": denied.next().at,
        "order to running": running.at - granted.at,
        "order to running from a checkpoint": restored.at - reached.at,
        "one step": report.at - running.at,
        "one save": save.at - report.at,
        "release to gone": released.at - asked_at,
        "notice to gone": notice.gone_at - notice.at,
    }


def test_the_default_latencies_add_up_as_computed_by_hand():
    assert stretches(Latencies()) == BY_HAND


@pytest.mark.parametrize(
    ("latency", "changes"),
    [
        ({"start_s": 50.0}, {"order to running": 50.0, "order to running from a checkpoint": 53.5}),
        ({"save_gb_per_s": 0.25}, {"one save": 3.0}),
        ({"save_overhead_s": 4.0}, {"one save": 9.0}),
        ({"restore_gb_per_s": 0.05}, {"order to running from a checkpoint": 31.0}),
        ({"restore_overhead_s": 0.0}, {"order to running from a checkpoint": 22.5}),
        ({"release_s": 30.0}, {"release to gone": 30.0}),
    ],
)
def test_a_latency_of_the_world_changes_its_own_interval(latency, changes):
    assert stretches(Latencies(**latency)) == BY_HAND | changes


@pytest.mark.parametrize(
    ("latency", "changes"),
    [
        ({"provision_s": 100.0}, {"request to grant": 100.0}),
        ({"denial_s": 30.0}, {"request to denial": 30.0}),
        ({"notice_s": 30.0}, {"notice to gone": 30.0}),
        ({"step_s": 3.0}, {"one step": 3.0}),
        ({"checkpoint_gb": 2.0}, {"one save": 21.0, "order to running from a checkpoint": 31.0}),
    ],
)
def test_a_latency_of_the_provider_or_of_the_code_changes_its_own_interval(latency, changes):
    assert stretches(Latencies(), **latency) == BY_HAND | changes


def test_provisioning_times_spread_by_the_given_share():
    def granted_at(spread: float, lease: str) -> float:
        scene = Scene(market(provision_s=100.0, provision_spread=spread))
        scene.rent(lease)
        return scene.next().at

    waits = [granted_at(0.5, f"l{number}") for number in range(50)]
    assert min(waits) < 70.0 < 130.0 < max(waits)
    assert all(50.0 <= wait <= 150.0 for wait in waits)


@pytest.mark.parametrize("wrong", [{"start_s": -1.0}, {"release_s": float("nan")}, {"save_gb_per_s": 0.0}])
def test_an_impossible_latency_is_refused_by_name(wrong):
    with pytest.raises(SpecError, match=next(iter(wrong))):
        Latencies(**wrong)
