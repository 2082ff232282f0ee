"""The largest checkpoint a notice allows: the formula, the warnings, and what is done about larger ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.view import RunView
from shoestring.policies.checkpointing.notice_limit import (
    MARGIN_S,
    NoticeLimit,
    largest_checkpoint_bytes,
    notice_warnings,
)
from shoestring.policies.checkpointing.on_notice import OnNotice, save_and_leave
from shoestring.report.explain import tell
from shoestring.report.receipt import receipt_of
from shoestring.runs.progress_line import line_of
from shoestring.testing.story import ON_DEMAND_OFFER, SPEC, SPOT, Story, story
from tests.world import scenes
from tests.world.runs import opening, simulate, simulated_world

SECONDS = st.floats(0.0, 1e4)
RATES = st.floats(1.0, 1e10)
GB = 10**9


# -- the formula -------------------------------------------------------------------------------------------------------
@given(SECONDS, SECONDS, RATES)
def test_a_checkpoint_of_the_largest_size_is_written_just_in_time(notice_s, step_s, bytes_per_s) -> None:
    largest = largest_checkpoint_bytes(notice_s, step_s, bytes_per_s)
    if largest > 0:
        assert math.isclose(step_s + largest / bytes_per_s + MARGIN_S, notice_s, rel_tol=1e-9, abs_tol=1e-6)
    else:
        assert step_s + MARGIN_S >= notice_s


@given(SECONDS, SECONDS, RATES, SECONDS)
def test_a_longer_notice_and_a_shorter_step_never_allow_less(notice_s, step_s, bytes_per_s, more_s) -> None:
    largest = largest_checkpoint_bytes(notice_s, step_s, bytes_per_s)
    assert largest >= 0
    assert largest_checkpoint_bytes(notice_s + more_s, step_s, bytes_per_s) >= largest
    assert largest_checkpoint_bytes(notice_s, step_s + more_s, bytes_per_s) <= largest
    assert largest_checkpoint_bytes(notice_s, step_s, 2 * bytes_per_s) == 2 * largest


@given(SECONDS, SECONDS, st.integers(1, 10**13), st.floats(1e-3, 1e4))
def test_a_saved_checkpoint_is_judged_by_the_formula(notice_s, step_s, size_bytes, save_s) -> None:
    limit = NoticeLimit(notice_s, step_s, size_bytes, save_s)
    if abs(limit.short_by_s) > 1e-6:
        assert limit.is_kept == (size_bytes <= limit.largest_bytes)


def test_what_takes_no_time_is_never_too_large_unless_the_step_is() -> None:
    assert NoticeLimit(30.0, 1.0, 10**12, 0.0).is_kept
    assert not NoticeLimit(30.0, 29.0, 0, 0.0).is_kept


# -- what is decided ---------------------------------------------------------------------------------------------------
def running(policy: OnNotice, *, notice_s: float = 30.0, offer=SPOT) -> Story:
    """One trial that has made its first step in ten seconds."""
    listings = tuple(replace(listing, notice_s=notice_s) for listing in SPEC.listings)
    run = story(policy, spec=replace(SPEC, listings=listings), lease="l0", job="j0", running_since=0.0, offer=offer)
    run.happened(replace(run.report("j0", 1, 0.5), at=10.0))
    return run


def saved(run: Story, step: int, *, gb: float, took_s: float) -> list[d.Decision]:
    save = run.save("j0", step)
    return run.tell(replace(save, took_s=took_s, ref=replace(save.ref, size_bytes=int(gb * GB))))


def test_a_checkpoint_too_large_for_the_notice_is_also_saved_periodically() -> None:
    run = running(OnNotice(every_s=600.0))
    (plan,) = saved(run, 1, gb=3.4, took_s=34.0)
    assert plan == d.PlanSaves(
        segment="s0",
        every_s=600.0,
        why="a notice of 30s allows checkpoints of up to 1.5 GB, and its 3.4 GB take 34s: also saved every 10m",
    )
    assert saved(run, 2, gb=3.4, took_s=34.0) == []  # decided once
    assert "saves from now on: a notice of 30s allows" in str([str(line) for line in tell(run.entries)])


def test_one_that_fits_is_saved_on_a_notice_only() -> None:
    assert saved(running(OnNotice()), 1, gb=0.5, took_s=5.0) == []
    assert saved(running(OnNotice(), offer=ON_DEMAND_OFFER), 1, gb=50.0, took_s=500.0) == []


def test_after_the_first_save_the_interval_is_decided() -> None:
    from shoestring.policies.placement.cheapest import Cheapest

    run = story(Cheapest(), OnNotice(), lease="l0", job="j0")
    started, plan = run.tell(e.TimerFired(at=1.0, name="tick"))
    assert isinstance(started, d.StartSegment)
    why = "not known yet whether a notice is long enough for its checkpoints"
    assert plan == d.PlanSaves(segment="s0", every_s=900.0, why=why)
    run.happened(e.SegmentStarted(at=2.0, segment="s0"))
    run.happened(replace(run.report("j0", 1, 0.5), at=12.0))
    (plan,) = [x for x in run.tell(run.save("j0", 1)) if isinstance(x, d.PlanSaves)]
    assert plan.every_s == SPEC.deadline_s
    assert "on a notice only" in plan.why


# -- the warnings ------------------------------------------------------------------------------------------------------
def test_a_warning_names_the_limit_the_trial_and_what_saves_it() -> None:
    run = running(OnNotice())
    saved(run, 1, gb=3.4, took_s=34.0)
    sentence = (
        "a notice of 30s allows checkpoints of up to 1.5 GB; trial 0 saves 3.4 GB in 34s: "
        "it relies on its saves every 15m"
    )
    receipt = receipt_of(run.state)
    assert receipt.warnings == (sentence,)
    assert str(receipt).endswith(f"warning: {sentence}")
    assert receipt.to_plain()["warnings"] == (sentence,)
    assert "1 too large to save on a notice" in line_of(run.state)


def test_where_nothing_else_saves_it_the_warning_says_so() -> None:
    run = running(OnNotice())
    run.happened(replace(save := run.save("j0", 1), took_s=99.0, ref=replace(save.ref, size_bytes=GB)))
    (warning,) = notice_warnings(RunView(run.state))
    assert warning.endswith("what it trained since its last save is lost with a preemption")


def test_a_step_longer_than_the_notice_is_named_as_the_reason() -> None:
    run = running(OnNotice(), notice_s=12.0)
    saved(run, 1, gb=0.1, took_s=1.0)
    (warning,) = notice_warnings(RunView(run.state))
    assert warning.startswith("a notice of 12s is over before a step of 10s can be saved; trial 0 takes that long: ")
    assert "1 with steps too long to save on a notice" in line_of(run.state)
    assert "too large" not in line_of(run.state)


def test_long_steps_and_large_checkpoints_are_two_warnings() -> None:
    run = running(OnNotice(), notice_s=12.0)
    saved(run, 1, gb=0.1, took_s=1.0)
    run.rent("l1", offer=SPOT)
    run.add("j1", until_step=9)
    run.start("s1", "j1", "l1")
    run.happened(replace(save := run.save("j1", 0), took_s=340.0, ref=replace(save.ref, size_bytes=34 * GB)))
    long, large = notice_warnings(RunView(run.state))
    assert "trial 0 takes that long: " in long
    assert "trial 1 saves 34 GB in 5m40: " in large


def test_many_trials_make_one_warning() -> None:
    run = running(OnNotice())
    saved(run, 1, gb=3.4, took_s=34.0)
    run.rent("l1", offer=SPOT)
    run.add("j1", until_step=9)
    run.start("s1", "j1", "l1")
    run.happened(replace(save := run.save("j1", 1), took_s=340.0, ref=replace(save.ref, size_bytes=34 * GB)))
    (warning,) = notice_warnings(RunView(run.state))
    assert "trial 1 saves 34 GB in 5m40, 1 other too much as well: " in warning


@pytest.mark.parametrize("offer", [SPOT, ON_DEMAND_OFFER])
def test_what_fits_or_is_never_preempted_needs_no_warning(offer) -> None:
    run = running(OnNotice(), offer=offer)
    saved(run, 1, gb=0.5 if offer.spot else 50.0, took_s=5.0 if offer.spot else 500.0)
    assert receipt_of(run.state).warnings == ()
    assert "notice" not in line_of(run.state)


# -- what it is good for -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class WithoutFallback:
    """Save on a notice only, whatever its length: the paper's rule."""

    wants: ClassVar = frozenset({e.RevocationNoticed})

    def decide(self, state, event):
        yield from save_and_leave(state, event)


def outcome(*, falls_back: bool):
    """40 steps of a minute on machines with a lifetime of half an hour; 15 GB take 151 s to save, the notice is 120
    s."""
    world = simulated_world(scenes.market(scenes.dies_at_age(1800.0)), checkpoint_gb=15.0)
    policies = [
        WithoutFallback() if isinstance(policy, OnNotice) and not falls_back else policy
        for policy in recipes.build(opening(world, max_steps=40).spec)
    ]
    return simulate(world, policies, max_steps=40)


def test_checkpoints_too_large_for_the_notice_cost_nearly_all_work_without_the_fallback_and_little_with_it() -> None:
    lost, _ = outcome(falls_back=False)
    assert lost.lost_steps > 500  # all work on spot machines was lost: it took an on-demand one to finish
    kept, entries = outcome(falls_back=True)
    assert kept.jobs["j0"].status == "finished"
    assert kept.spent_usd < lost.spent_usd / 5
    at_risk_s = 900.0 + 60.0 + 151.0  # since the last save began, with the current step
    assert kept.lost_s <= kept.revocations * at_risk_s
    assert kept.lost_steps < 40
    assert any("also saved every 15m" in str(line) for line in tell(entries))
    assert "it relies on its saves every 15m" in str(receipt_of(kept))
