"""The queue as a whole is planned for: faster machines, or on-demand ones, when its deadline needs them."""

from __future__ import annotations

from statistics import fmean

import pytest
from msgspec.structs import replace

import shoestring as ss
from benchmarks.placement_queue import SEEDS, TRIALS, queued
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import Listing, Offer
from shoestring.policies.placement.slack.per_trial import SlackContext, slack_of
from shoestring.policies.placement.slack.policy import Slack
from shoestring.policies.placement.slack.queue import Behind, queued_behind
from shoestring.report.study import Study
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story, story

FAST = {spot: Offer(provider="aws", zone="a", machine="fast", spot=spot) for spot in (True, False)}
TWO_TYPES = (
    *SPEC.listings,
    *(Listing(offer=offer, vcpus=16, memory_gb=64, on_demand_usd_per_hour=9.0) for offer in FAST.values()),
)
STEP_S = 600.0


def bag(deadline: str, budget: float, seed: int = 0, **market: object) -> Study:
    """60 jobs of 60 steps on four machines."""
    return ss.simulate(
        kind="bag",
        name="bag",
        given=[{"k": number} for number in range(60)],
        max_steps=60,
        budget=budget,
        deadline=deadline,
        max_machines=4,
        market={"kind": "preemptible", "seed": seed, **market},
        simulate={"seconds_per_step": 90},
        seed=seed,
    )


def done(study: Study) -> int:
    return study.state.by_status["finished"]


# -- whole runs --------------------------------------------------------------------------------------------------------
def test_a_bag_gets_faster_machines_when_its_deadline_needs_them() -> None:
    """On the cheapest type, which is also the slowest, 28 of 60 were done for a fifth of the budget."""
    study = bag("18h", 12)
    assert done(study) == 60
    assert study.spent < 8


def test_a_bag_with_time_to_spare_stays_on_the_cheapest_machines() -> None:
    study = bag("40h", 12)
    assert done(study) == 60
    assert {offer.machine for offer in study.state.accounts} == {"n1-highcpu-2"}


def test_a_machine_too_slow_for_the_queue_is_left_before_its_trial_is_done() -> None:
    """A job on the slowest type takes 2h26: after that, eight hours would not be enough on any."""
    study = bag("8h", 12)
    assert done(study) == 60
    assert study.spent <= 12
    halted = [x for entry in study.entries() for x in entry.decisions if isinstance(x, d.HaltSegment)]
    assert any("faster machine" in x.why for x in halted)


def test_where_not_all_can_be_in_time_more_are_than_on_the_cheapest_machines() -> None:
    study = bag("5h", 12)
    assert 16 <= done(study) < 60  # 8 on the slowest type
    assert study.spent <= 12


def test_the_type_is_planned_for_also_where_only_spot_machines_are_on_offer() -> None:
    study = bag("18h", 12, machines={"spot": True, "names": ["n1-highcpu-2", "n1-highcpu-8", "n1-highcpu-32"]})
    assert done(study) == 60


@pytest.mark.parametrize("deadline_min", [68, 70])
def test_a_queue_with_hardly_any_slack_is_in_time_for_less_than_on_demand(deadline_min: int) -> None:
    """24 trials in six rounds of ten minutes, 63 minutes on on-demand machines; four preemptions an hour."""
    studies = [queued("slack", 2, 3, deadline_min, seed) for seed in range(SEEDS)]
    assert [study.finished for study in studies] == [TRIALS] * SEEDS
    assert fmean(study.usd for study in studies) < 0.8 * queued("on_demand", 2, 3, deadline_min, 0).usd


# -- turn by turn ------------------------------------------------------------------------------------------------------
def running(*, spec=SPEC, waiting: int = 2) -> Story:
    """Two trials, on a spot machine each, have done six of nine steps; others wait."""
    run = story(Slack(), spec=replace(spec, max_machines=2, trials=2 + waiting))
    for number in range(2 + waiting):
        run.add(f"j{number}", until_step=9)
    for number in range(2):
        run.rent(f"l{number}", end_by=spec.deadline_s)
        run.start(f"s{number}", f"j{number}", f"l{number}", running_since=0.0)
        run.happened(replace(run.report(f"j{number}", 6, 0.5), at=6 * STEP_S))
    return run


def notice(run: Story, lease: str) -> list[d.Decision]:
    now = run.state.now
    return run.tell(e.RevocationNoticed(at=now, lease=lease, gone_at=now + 120))


def test_the_place_of_a_machine_on_notice_is_free_for_the_next_trial() -> None:
    """What is rented for it has the whole share of the queue to do, with what is left of the trial that must leave."""
    run = running()
    run.happened(e.RevocationNoticed(at=run.state.now, lease="l1", gone_at=run.state.now + 120))
    assert queued_behind(run.view) == {"j0": Behind(9, 1), "j2": Behind(3, 1)}


def test_what_replaces_a_machine_on_notice_is_on_demand_where_the_queue_has_no_slack() -> None:
    """Three steps and a trial, nine steps, are left for each of two places."""
    short = replace(SPEC, deadline_s=(6 + 3 + 9) * STEP_S + 600)
    requests = [x for x in notice(running(spec=short), "l1") if isinstance(x, d.RequestLease)]
    assert [x.offer for x in requests] == [ON_DEMAND_OFFER]
    roomy = replace(SPEC, deadline_s=20 * 3600.0)
    requests = [x for x in notice(running(spec=roomy), "l1") if isinstance(x, d.RequestLease)]
    assert [x.offer for x in requests] == [SPOT]


@pytest.mark.parametrize(("deadline_h", "first"), [(4.2, "j2"), (60, "j3")])
def test_a_short_rest_starts_last_where_the_end_must_be_even(deadline_h: float, first: str) -> None:
    """j3 has one step left; j2 has all nine."""
    run = running(spec=replace(SPEC, deadline_s=deadline_h * 3600), waiting=3)
    for job in ("j2", "j4"):  # they wait behind j3 now
        run.order(d.PauseJob(job=job, why="the story"), d.RunJob(job=job, until_step=9, why="the story"))
    run.order(d.RunJob(job="j3", until_step=1, why="the story"))
    started = [x for x in run.end("j0", step=9) if isinstance(x, d.StartSegment)]
    assert [x.job for x in started] == [first]


def test_an_idle_machine_too_slow_for_the_queue_is_released_for_a_faster_one() -> None:
    """Two trials of nine steps behind each place take three hours on the small machines: there are two."""
    run = running(spec=replace(SPEC, listings=TWO_TYPES, deadline_s=(6 + 12) * STEP_S), waiting=4)
    decisions = run.end("j0", step=9)
    assert [x.lease for x in decisions if isinstance(x, d.ReleaseLease)] == ["l0"]
    assert [x.offer.machine for x in decisions if isinstance(x, d.RequestLease)] == ["fast"]
    assert not [x for x in decisions if isinstance(x, d.StartSegment)]


def test_a_type_no_trial_was_timed_on_counts_as_fast_as_expected_only_where_no_other_is_in_time() -> None:
    for deadline_h, slower_than_s in ((20, STEP_S + 1), (3.2, STEP_S)):
        run = running(spec=replace(SPEC, listings=TWO_TYPES, deadline_s=deadline_h * 3600), waiting=4)
        trial_slack = slack_of(SlackContext(run.view), run.state.jobs["j0"])
        assert trial_slack is not None
        assert trial_slack.whole_queue
        assert trial_slack.seconds_per_step < slower_than_s
        assert (trial_slack.on_demand[0][0].machine == "small") == (deadline_h == 20)
