"""Successive halving and Hyperband: a rung is judged when it is complete; brackets start at different rungs."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.kernel import decisions as d
from shoestring.policies.search.halving.hyperband import Hyperband, apportion, bracket_size, bracket_steps
from shoestring.policies.search.halving.rungs import rung_steps
from shoestring.policies.search.halving.successive import SuccessiveHalving
from tests.policies.search.studies import finish, play_out, running, searched, statuses, study


def test_no_trial_is_promoted_before_the_rung_is_complete() -> None:
    run = study(SuccessiveHalving(), places=9, trials=9)
    for number in range(8):
        assert not [x for x in finish(run, f"j{number}", number / 10) if isinstance(x, d.RunJob)]
    decided = finish(run, "j8", 0.05)
    why = "ranked {} of 9 at step 1, in the top third"
    assert [(x.job, x.until_step, x.why) for x in decided if isinstance(x, d.RunJob)] == [
        ("j0", 3, why.format(1)),
        ("j8", 3, why.format(2)),
        ("j1", 3, why.format(3)),
    ]


def test_hopeless_trials_are_pruned_before_the_rung_is_complete() -> None:
    run = study(SuccessiveHalving(), places=9, trials=9)
    for number in range(3):
        assert finish(run, f"j{number}", number / 10) == []
    assert finish(run, "j3", 0.15) == [
        d.DropJob(job="j2", why="pruned at step 1: not in the top 3 of 4 so far, at most 3 of 9 can be promoted")
    ]


def test_the_last_one_standing_is_the_best() -> None:
    run = study(SuccessiveHalving(), places=4, trials=9)
    play_out(run, lambda job, _step: int(job[1:]) / 10, random.Random(1))
    assert statuses(run) == {"finished": 1, "pruned": 8}
    assert run.state.jobs["j0"].status == "finished"
    assert run.state.jobs["j0"].tags == {"rung": 2}


@pytest.mark.parametrize("search", [SuccessiveHalving(), Hyperband()])
def test_a_study_in_which_everything_fails_ends(search) -> None:
    run = study(search, places=2, trials=9, max_failures=0)
    play_out(run, lambda _job, _step: 0.0, random.Random(1), fails=1.0)
    assert statuses(run) == {"failed": 9}


def test_a_study_in_which_everything_diverges_ends() -> None:
    run = study(SuccessiveHalving(), places=2, trials=9)
    play_out(run, lambda _job, _step: math.nan, random.Random(1))
    assert statuses(run) == {"pruned": 9}


def test_a_trial_pruned_by_another_policy_on_its_way_does_not_block_the_rung() -> None:
    run = study(SuccessiveHalving(), places=3, trials=3)
    finish(run, "j0", 0.1)
    finish(run, "j1", 0.2)
    run.order(d.DropJob(job="j2", why="the story"))
    assert [x.job for x in searched(run.end("j2", "halted", step=0)) if isinstance(x, d.RunJob)] == ["j0"]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), trials=st.integers(1, 40), eta=st.integers(2, 4), places=st.integers(1, 7))
def test_it_ends_as_halving_on_paper_does(seed: int, trials: int, eta: int, places: int) -> None:
    losses = random.Random(seed)
    value = {f"j{number}": losses.random() for number in range(trials)}
    run = study(SuccessiveHalving(eta=eta), trials=trials, places=places)
    play_out(run, lambda job, _step: value[job], random.Random(seed))
    on_paper = sorted(value, key=value.__getitem__)
    for step in rung_steps(1, eta, 9):
        assert {r.job for r in run.state.settled if r.until_step == step} == set(on_paper)
        on_paper = on_paper[: max(1, len(on_paper) // eta)]


def test_hyperband_has_the_brackets_of_the_book() -> None:
    brackets = bracket_steps(81, 3, 1)
    assert brackets == [(1, 3, 9, 27, 81), (3, 9, 27, 81), (9, 27, 81), (27, 81), (81,)]
    assert [bracket_size(5, len(steps), 3) for steps in brackets] == [81, 34, 15, 8, 5]


def test_brackets_start_no_lower_than_the_grace_steps_and_end_at_the_last() -> None:
    assert bracket_steps(50, 3, 1) == [(1, 5, 16, 50), (5, 16, 50), (16, 50), (50,)]
    assert bracket_steps(50, 3, 4) == [(5, 16, 50), (16, 50), (50,)]
    assert bracket_steps(1, 3, 1) == [(1,)]


@given(st.integers(1, 10**5), st.integers(1, 500), st.integers(2, 5))
def test_every_trial_is_dealt_to_a_bracket(trials: int, max_steps: int, eta: int) -> None:
    brackets = bracket_steps(max_steps, eta, 1)
    sizes = [bracket_size(len(brackets), len(steps), eta) for steps in brackets]
    shares = apportion(trials, sizes)
    assert sum(shares) == trials
    assert all(abs(share - trials * size / sum(sizes)) < 1 for share, size in zip(shares, sizes, strict=True))
    assert all(steps == tuple(sorted(set(steps))) for steps in brackets)
    assert all(steps[0] >= 1 for steps in brackets)


def test_hyperband_runs_its_brackets_side_by_side() -> None:
    run = study(Hyperband(), places=5, trials=22)
    play_out(run, lambda job, _step: int(job[1:]) / 100, random.Random(1))
    dealt = Counter(job.tags["bracket"] for job in run.state.jobs.values())
    assert dealt == {0: 12, 1: 6, 2: 4}  # 9 : 5 : 3
    ends = Counter((job.tags["bracket"], job.status) for job in run.state.jobs.values())
    assert ends == {
        (0, "finished"): 1, (0, "pruned"): 11, (1, "finished"): 2, (1, "pruned"): 4, (2, "finished"): 4,
    }  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), trials=st.integers(1, 30), places=st.integers(1, 6))
def test_hyperband_decides_the_same_when_it_has_forgotten_everything(seed: int, trials: int, places: int) -> None:
    options = {"trials": trials, "places": places, "max_failures": 0}
    kept, rebuilt = study(Hyperband(), **options), study(Hyperband(), **options)
    order = random.Random(seed)
    while jobs := running(kept):
        job, loss = order.choice(jobs), order.random()
        rebuilt.state.memos.clear()
        if order.random() < 0.1:
            assert kept.end(job, "failed", step=0) == rebuilt.end(job, "failed", step=0)
        else:
            assert finish(kept, job, loss) == finish(rebuilt, job, loss)
    assert not [job for job in kept.state.jobs.values() if not job.over]
