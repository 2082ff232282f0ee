"""A few of the fuzzer's studies with every test run, and a control: what the fuzzer is there to find, it finds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from shoestring.kernel.decisions import ExtendLease
from shoestring.kernel.events import LeaseGranted, TimerFired
from shoestring.kernel.history import Entry
from shoestring.kernel.types import Listing, Offer
from shoestring.space.space import Float
from shoestring.world.sim.world import SimWorld
from tests.fuzz.check import BoundedJournal, TooMuch, study
from tests.fuzz.draft import NO_SPEC, Draft, PromptWorkers, World
from tests.fuzz.shrink import shrunk
from tests.studies import START


@pytest.mark.parametrize("seed", range(10))
def test_a_random_study_has_no_finding(seed: int) -> None:
    assert study(seed).findings == []


@pytest.mark.parametrize("seed", [559, 841, 2533, 5752])
def test_uniform_progress_does_not_look_every_minute_of_a_long_wait(seed: int) -> None:
    assert study(seed).findings == []


@pytest.mark.parametrize("seed", [767, 1204, 2431, 6577])
def test_no_trial_is_moved_again_and_again_without_a_step(seed: int) -> None:
    assert study(seed).findings == []


def test_a_search_that_was_resumed_ranks_trials_as_one_that_ran_through() -> None:
    """hypersched: leaders that were resting on a rung have left it."""
    assert study(2961).findings == []


def test_slack_measures_trials_that_name_several_small_machines() -> None:
    assert study(6822).findings == []


def test_machines_are_not_given_back_for_on_demand_ones_that_the_budget_does_not_pay() -> None:
    assert study(22253).findings == []


def test_renewals_without_end_are_found_and_those_that_time_explains_are_not() -> None:
    def renew(every_s: float) -> None:
        journal = BoundedJournal(most=10, slice_s=900.0)
        journal.append(Entry(seq=1, event=LeaseGranted(at=START, lease="l0"), decisions=()), wait=False)
        extended = ExtendLease(lease="l0", end_by=START, reserve_usd=0.0, why="the story")
        for number in range(2000):
            event = TimerFired(at=START + every_s * number, name="renew:l0")
            journal.append(Entry(seq=2 + number, event=event, decisions=(extended,)), wait=False)

    renew(450.0)
    with pytest.raises(TooMuch, match="1 leases held for 1 slices"):
        renew(1.0)


@dataclass(frozen=True)
class Hasty(World):
    """Workers that leave a minute before their time is over, of which placement knows nothing."""

    def world(self) -> SimWorld:
        world = PromptWorkers(self.provider(), self.workload(), self.latencies(), start=START)
        world.lead_s = 60.0
        return world


def test_trials_that_are_started_and_stopped_for_ever_are_found_and_shrunk() -> None:
    offer = Offer(provider="aws", zone="z", machine="m", spot=False)
    listing = Listing(offer=offer, vcpus=4, memory_gb=8, slots=2, on_demand_usd_per_hour=0.1)
    quiet = {"revoked_per_hour": 0.0, "shocks_per_hour": 0.0, "denial_share": 0.0, "trouble_share": 0.0}
    world = Hasty(
        spec=NO_SPEC, seed=1, traces=(), **quiet, provision_s=0.0, base_step_s=20.0, checkpoint_gb=0.05, start_s=0.05
    )
    fields = {
        "kind": "study",
        "recipe": "random",
        "options": {"placement": "cheapest"},
        "space": {"x": Float(low=0.0, high=1.0)},
        "minimize": "loss",
        "trials": 80,
        "max_steps": 1,
        "seed": 7,
        "budget": 10.0,
        "deadline": 600.0,
        "wind_down_s": 30.0,
        "max_machines": 1,
    }
    small, finding = shrunk(Draft(fields, (listing,), world), "starts", patience_s=5.0)
    assert "in a row without a step" in finding.detail
    assert (small.fields["seed"], small.fields["options"]) == (0, {})
