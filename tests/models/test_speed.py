"""How long a step takes: the prior guess, what one trial tells about another, and the variance."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.datasets import data_folder
from benchmarks.workload_curves import curves
from shoestring import recipes
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Job, Pace, Segment
from shoestring.kernel.state import RunState
from shoestring.kernel.types import JobId, LeaseId, Listing, Offer, SegmentId
from shoestring.kernel.view import RunView
from shoestring.models.speed.model import SpeedAsPrinted, SpeedModel, coefficient_of_variation, learned_speeds
from shoestring.models.speed.prior import SpeedPrior, printed_prior_step_s, prior_step_s, size_of
from tests.world import scenes
from tests.world.runs import opening, simulate, simulated_world
from tests.world.scenes import dies_at_age


def listing(machine: str, vcpus: float, gpus: int = 0, slots: int = 1) -> Listing:
    offer = Offer(provider="aws", zone="a", machine=machine, spot=True)
    return Listing(offer=offer, vcpus=vcpus, memory_gb=8, gpus=gpus, slots=slots, on_demand_usd_per_hour=0.1 * vcpus)


SMALL, MIDDLE, LARGE = listing("small", 2), listing("middle", 4), listing("large", 16)
ALL = (SMALL, MIDDLE, LARGE)
CPU_SECONDS = SpeedPrior().step_s * statistics.geometric_mean((2, 4, 16)) ** 0.7
"""C0 of the paper: a step takes a minute on a machine of their mean size."""


def pace(step_s: float, steps: int = 10) -> Pace:
    return Pace(steps, step_s * steps)


# -- the guess ---------------------------------------------------------------------------------------------------------
def test_a_larger_machine_is_guessed_to_be_faster_and_in_print_slower() -> None:
    assert [prior_step_s(machine, 1, 60.0) for machine in ALL] == pytest.approx([60 / cpus**0.7 for cpus in (2, 4, 16)])
    assert [printed_prior_step_s(machine, 1, 60.0) for machine in ALL] == [120.0, 240.0, 960.0]


def test_half_of_the_slots_are_half_of_the_machine_and_gpus_count_instead_of_cpus() -> None:
    shared = listing("shared", 8, slots=4)
    assert size_of(shared, 1) == 2.0
    assert size_of(shared, 4) == 8.0
    assert size_of(listing("gpu", 8, gpus=4, slots=4), 2) == 2 * size_of(listing("one", 4, gpus=1), 1)


def test_without_observations_the_mean_is_the_guess_and_the_variance_large() -> None:
    model = SpeedModel.of(ALL, {})
    step = model.step_time(JobId("j0"), LARGE, 1)
    for machine in ALL:
        guess_s = prior_step_s(machine, 1, CPU_SECONDS)
        assert guess_s < model.step_time(None, machine, 1).expected_s < 1.3 * guess_s  # a little more: unsure is dearer
    assert step.log_sd > 1.0
    assert step.median_s < step.expected_s < step.at_most_s()


# -- what was seen -----------------------------------------------------------------------------------------------------
def test_a_trials_own_reports_dominate_on_the_same_machine() -> None:
    model = SpeedModel.of(ALL, {JobId("j0"): {("small", 1): pace(7.0, steps=100)}})
    here = model.step_time(JobId("j0"), SMALL, 1)
    assert here.median_s == pytest.approx(7.0, rel=0.01)
    assert here.log_sd < 0.02


def test_a_trial_observed_on_one_machine_is_predicted_well_on_another_that_others_ran_on() -> None:
    others = {JobId(f"j{n}"): {("small", 1): pace(8.0 + n), ("large", 1): pace((8.0 + n) / 3)} for n in range(4)}
    seen = {JobId("new"): {("small", 1): pace(20.0)}}
    alone, together = SpeedModel.of(ALL, seen), SpeedModel.of(ALL, {**others, **seen})
    told, guessed = together.step_time(JobId("new"), LARGE, 1), alone.step_time(JobId("new"), LARGE, 1)
    assert told.median_s == pytest.approx(20.0 / 3, rel=0.05)
    assert abs(guessed.median_s - 20.0 / 3) > abs(told.median_s - 20.0 / 3)
    assert told.log_sd < 0.15 < guessed.log_sd


def test_observed_machines_tell_the_effect_of_size_on_an_unobserved_one() -> None:
    """Here twice the CPUs are 1.4 times as fast: the guess, twice as fast, is not kept."""
    seen = {JobId(f"j{n}"): {("small", 1): pace(10.0), ("middle", 1): pace(10.0 / 2**0.5)} for n in range(6)}
    learned = SpeedModel.of(ALL, seen).step_time(JobId("j0"), LARGE, 1).median_s
    assert 10.0 / 8 < learned < 10.0
    assert abs(math.log(learned / (10.0 / 8**0.5))) < abs(math.log(10.0 / 8 / (10.0 / 8**0.5)))


def test_a_new_trial_is_expected_to_be_like_the_others() -> None:
    seen = {JobId(f"j{n}"): {("small", 1): pace(step_s)} for n, step_s in enumerate((5.0, 10.0, 20.0))}
    new = SpeedModel.of(ALL, seen).step_time(None, SMALL, 1)
    assert new.median_s == pytest.approx(10.0, rel=0.1)
    assert 0.4 < new.log_sd < 0.9


def test_machines_without_a_listing_are_left_out() -> None:
    model = SpeedModel.of((SMALL,), {JobId("j0"): {("gone", 1): pace(1.0)}})
    assert model.step_time(JobId("j0"), SMALL, 1) == SpeedModel.of((SMALL,), {}).step_time(None, SMALL, 1)


def test_an_open_segment_counts_and_steps_without_time_do_not() -> None:
    job = Job(id=JobId("j0"), number=0, config={}, tags={}, segment=SegmentId("s0"))
    job.paces = {("small", 1): Pace(2, 20.0), ("large", 1): Pace(0, 0.0)}
    segment = Segment(
        id=SegmentId("s0"),
        job=job.id,
        leases=(LeaseId("l0"),),
        slots=1,
        slots_on=(1,),
        machine="small",
        until_step=9,
        started_at=0.0,
        first_step=2,
        step=4,
        step_at=130.0,
        trains_from=100.0,
    )
    state = RunState()
    state.segments[segment.id] = segment
    assert RunView(state).paces(job) == {("small", 1): Pace(4, 50.0)}


def test_as_printed_has_only_what_it_observed() -> None:
    model = SpeedAsPrinted({JobId("j0"): {("small", 1): pace(7.0)}}, cpu_seconds=10.0)
    assert model.step_time(JobId("j0"), SMALL, 1).median_s == pytest.approx(7.0)
    assert model.step_time(JobId("j1"), SMALL, 1).median_s == 20.0
    assert model.step_time(None, LARGE, 1).median_s == 160.0


# -- the arithmetic ----------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 2),
            st.sampled_from((1, 2, 4)),
            st.tuples(st.floats(0.1, 100), st.floats(0, 1.1)),
            st.integers(1, 50),
        ),
        max_size=8,
    )
)
def test_it_is_the_posterior_of_one_large_normal_distribution(
    told: list[tuple[int, int, int, tuple[float, float], int]],
) -> None:
    seen: dict[JobId, dict[tuple[str, int], Pace]] = {}
    speeds: dict[tuple[int, int], tuple[float, float]] = {}
    for job, machine, slots, drawn, steps in told:
        one_slot_s, gain = speeds.setdefault((job, machine), drawn)  # one for all widths of a trial on a machine
        where = ALL[machine].offer.machine, slots
        seen.setdefault(JobId(f"j{job}"), {})[where] = pace(one_slot_s / slots**gain, steps)
    model, spread = SpeedModel.of(ALL, seen), spread_of(seen)
    assert model.spread == pytest.approx(spread)
    for job in ("j0", "j9"):
        for machine in ALL:
            for slots in (1, 4):
                expected = dense_answer(seen, job, machine, slots, spread)
                assert model.step_time(JobId(job), machine, slots) == pytest.approx(expected, rel=1e-7)


def dense_answer(
    seen: dict[JobId, dict[tuple[str, int], Pace]], job: str, machine: Listing, slots: int, spread: float
) -> tuple[float, float]:
    """The same without any structure: the covariance of all paces with each other and with the predicted one. The
    level of all, of which nothing is known, is no part of it: it is the multiplier of weights that sum to one, as in
    ordinary kriging. (A large variance in its place would cost the digits that are compared.)"""
    prior, by_name = SpeedPrior(), {each.offer.machine: each for each in ALL}
    middle = statistics.fmean(math.log(size_of(each, 1)) for each in ALL)
    points = [(j, by_name[name], n, p) for j, paces in seen.items() for (name, n), p in paces.items()]

    def covariance(a: str, on_a: Listing, n_a: int, b: str, on_b: Listing, n_b: int) -> float:
        sizes = (math.log(size_of(on_a, 1)) - middle) * (math.log(size_of(on_b, 1)) - middle)
        shared = (0.0 if points else prior.of_all**2) + prior.of_core_gain**2 * sizes
        shared += prior.of_slot_gain**2 * math.log(n_a) * math.log(n_b) + (on_a is on_b) * prior.of_machines**2
        same = on_a is on_b and n_a == n_b
        shared += same * prior.of_widths**2 * math.log(n_a) * math.log(n_b)
        return shared + (a == b) * (spread**2 + same * prior.of_pairs**2)

    def guess(on: Listing, slots: int) -> float:
        return math.log(prior_step_s(on, slots, CPU_SECONDS)) - (0.0 if points else prior.of_all**2 / 2)

    own = covariance(job, machine, slots, job, machine, slots)
    if not points:
        return math.exp(guess(machine, slots)), math.sqrt(own)
    among = np.array([[covariance(*a, *b) for *b, _ in points] for *a, _ in points])
    among += np.diag([prior.of_steps**2 / p.steps for *_, p in points])
    across = np.array([covariance(job, machine, slots, *b) for *b, _ in points])
    logs = np.array([math.log(p.seconds / p.steps) - guess(on, n) for _, on, n, p in points])
    one = np.ones((len(points), 1))
    bordered = np.block([[among, one], [one.T, np.zeros((1, 1))]])
    *weights, level = np.linalg.solve(bordered, np.append(across, 1.0))
    return math.exp(guess(machine, slots) + weights @ logs), math.sqrt(own - weights @ across - level)


def spread_of(seen: dict[JobId, dict[tuple[str, int], Pace]]) -> float:
    """The deviations of trials in the same place, the prior as one of them, to half a power of two."""
    prior, logs = SpeedPrior().of_trials, {}
    for paces in seen.values():
        for where, p in paces.items():
            logs.setdefault(where, []).append(math.log(p.seconds / p.steps))
    squares = prior**2 + sum(len(found) * statistics.pvariance(found) for found in logs.values())
    ratio = math.sqrt(squares / (1 + sum(len(found) - 1 for found in logs.values()))) / prior
    return prior * 2 ** (round(2 * math.log2(ratio)) / 2)


def test_the_order_of_reports_does_not_matter() -> None:
    rng = random.Random(1)
    seen = {JobId(f"j{n}"): {("small", 1): pace(rng.uniform(1, 9)), ("large", 1): pace(rng.random())} for n in range(9)}
    turned = dict(reversed(seen.items()))
    here, there = (SpeedModel.of(ALL, told).step_time(JobId("j3"), MIDDLE, 1) for told in (seen, turned))
    assert here == pytest.approx(there, rel=1e-9)


@dataclass(frozen=True)
class Compares:
    """Does the cached evidence equal, to the bit, a fresh count of every trial?"""

    seen: list[int]
    wants: ClassVar = frozenset({e.JobReported, e.SegmentEnded, e.LeaseEnded, e.CheckpointSaved})

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:  # noqa: ARG002
        afresh = SpeedModel.of(state.spec.listings, {j.id: state.paces(j) for j in state.jobs.values()})
        kept = learned_speeds(state)
        for job in (None, *state.jobs):
            for each in state.spec.listings:
                assert kept.step_time(job, each, 1) == afresh.step_time(job, each, 1)
        self.seen.append(len(state.jobs))
        yield from ()


@pytest.mark.parametrize("recipe", ["random", "asha"])
def test_the_cached_evidence_equals_a_fresh_count(recipe: str) -> None:
    offers = [Offer(provider="aws", zone="a", machine=f"m{size}", spot=True) for size in (1, 2, 4)]
    provider = scenes.market(
        dies_at_age(700.0), listings=[scenes.listing(x, vcpus=2 + i) for i, x in enumerate(offers)]
    )
    world = simulated_world(provider, seconds_per_step=lambda config, _, __: 20.0 + 60.0 * config["x"])
    fields = {"trials": 6, "max_steps": 12, "recipe": recipe, "max_machines": 3, "options": {}}
    compares = Compares([])
    state, _ = simulate(world, [*recipes.build(opening(world, **fields).spec), compares], **fields)
    assert state.revocations >= 1
    assert len(compares.seen) > 30


# -- are steps steady? -------------------------------------------------------------------------------------------------
def test_the_variation_of_recorded_epochs_is_that_of_the_paper() -> None:
    """Paper: less than 0.1. 345 networks on a GPU."""
    path = data_folder() / "lc_nasbench_nlp_curves.parquet"
    if not path.exists():
        pytest.skip(f"{path} is missing: set SHOESTRING_DATA to the folder with the recorded curves")
    epochs = pytest.importorskip("pandas").read_parquet(path)
    runs = [run.epoch_time_s.dropna() for _, run in epochs.groupby("config_id")]
    varied = [coefficient_of_variation(run) for run in runs if len(run) >= 10]
    assert statistics.median(varied) < 0.1
    assert sum(each < 0.1 for each in varied) > 0.95 * len(varied)


@pytest.mark.heavy
def test_the_variation_of_a_workloads_steps_is_that_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By CPU time, without the first two, which warm the caches. A machine on which the same sum takes now this, now
    that long cannot tell."""
    monkeypatch.setenv("SHOESTRING_DATA", str(tmp_path))
    equal_work = own_variation()
    varied = [
        coefficient_of_variation(curves(workload, (15,), tmp_path).step_s[2:, 0].tolist())
        for workload in ("trees", "logistic")
    ]
    equal_work = max(equal_work, own_variation())
    if equal_work > 0.05:
        pytest.skip(
            f"this machine is too busy to tell: equal work varies by {equal_work:.2f}, steps by {max(varied):.2f}"
        )
    assert max(varied) < 0.1


def own_variation() -> float:
    """Of the CPU time of equal pieces of work."""
    numbers, taken = np.random.default_rng(0).normal(size=100_000), []
    for _ in range(40):
        began = time.process_time()
        for _ in range(3):
            np.sort(numbers)
        taken.append(time.process_time() - began)
    return coefficient_of_variation(taken[2:])
