"""ASHA: a trial in the top third of its rung is promoted at once; one that never can be is pruned."""

from __future__ import annotations

import math
import random
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.rungs import rung_steps
from tests.policies.search.studies import finish, play_out, running, searched, statuses, study


def new_trial(number: int, *, rung: int = 0) -> list[d.Decision]:
    return [
        d.AddJob(job=f"j{number}", config=ANY, tags={"rung": rung}, why=ANY),
        d.RunJob(job=f"j{number}", until_step=1, why=ANY),
    ]


def test_a_study_starts_as_many_trials_as_can_run_at_once() -> None:
    run = study(Asha(), places=3)
    assert [(job.id, job.until_step) for job in run.state.jobs.values()] == [("j0", 1), ("j1", 1), ("j2", 1)]


def test_the_best_of_three_is_promoted_and_others_are_replaced() -> None:
    run = study(Asha(), places=3, trials=30)
    assert finish(run, "j0", 0.5) == new_trial(3)
    assert finish(run, "j1", 0.4) == new_trial(4)
    why = "ranked 1 of 3 at step 1, in the top third"
    assert finish(run, "j2", 0.3) == [
        d.TagJob(job="j2", tags={"rung": 1}, why=why),
        d.RunJob(job="j2", until_step=3, why=why),
    ]


def test_a_better_trial_that_arrives_later_is_promoted_too() -> None:
    run = study(Asha(), places=3, trials=30)
    for job, value in (("j0", 0.5), ("j1", 0.4), ("j2", 0.3)):
        finish(run, job, value)
    decided = finish(run, "j3", 0.2)
    assert decided[1] == d.RunJob(job="j3", until_step=3, why="ranked 1 of 4 at step 1, in the top third")
    assert finish(run, "j4", 0.45) == new_trial(5)  # fourth of five


def test_larger_is_better_when_maximizing() -> None:
    run = study(Asha(), places=3, trials=30, direction="maximize")
    finish(run, "j0", 0.5)
    finish(run, "j1", 0.4)
    assert [x.job for x in finish(run, "j2", 0.3) if isinstance(x, d.RunJob)] == ["j0"]


def test_a_trial_that_diverged_is_pruned_at_once() -> None:
    run = study(Asha(), places=3, trials=30)
    drop, *rest = finish(run, "j0", math.nan)
    assert drop == d.DropJob(job="j0", why="pruned at step 1: its metric is NaN or infinite")
    assert rest == new_trial(3)


def test_a_trial_that_reported_nothing_ranks_last_but_may_be_promoted() -> None:
    run = study(Asha(), places=1, trials=1)
    assert finish(run, "j0", None)[1] == d.RunJob(
        job="j0", until_step=3, why="ranked 1 of 1 at step 1, best of fewer than eta=3"
    )
    run = study(Asha(), places=3, trials=30)
    finish(run, "j0", None)
    finish(run, "j1", 1e300)
    assert [x.job for x in finish(run, "j2", None) if isinstance(x, d.RunJob)] == ["j1"]


def test_failed_trials_count_as_the_worst_of_their_rung() -> None:
    run = study(Asha(), places=3, trials=30, max_failures=0)
    finish(run, "j0", 0.5)
    assert searched(run.end("j1", "failed", step=0)) == new_trial(4)
    assert [x.job for x in searched(run.end("j2", "failed", step=0)) if isinstance(x, d.RunJob)] == ["j0"]


def test_a_trial_that_can_never_be_promoted_is_pruned() -> None:
    run = study(Asha(), places=1, trials=9)
    for number, value in enumerate((0.1, 0.2, 0.3)):
        finish(run, f"j{number}", value)
    finish(run, "j0", 0.1)  # now at step 3
    decided = finish(run, "j3", 0.4)
    assert decided[0] == d.DropJob(
        job="j3", why="pruned at step 1: not in the top 3 of 4 so far, at most 3 of 9 can be promoted"
    )


def test_one_trial_is_trained_to_the_end_even_if_there_are_too_few_to_divide() -> None:
    run = study(Asha(), places=2, trials=2)
    play_out(run, lambda job, _step: {"j0": 0.2, "j1": 0.1}[job], random.Random(1))
    assert statuses(run) == {"finished": 1, "pruned": 1}
    assert run.state.jobs["j1"].status == "finished"


def test_code_that_ends_early_keeps_its_rank() -> None:
    run = study(Asha(), places=3, trials=3)
    run.happened(run.report("j0", 1, 0.1))
    run.end("j0", "completed", step=1)
    assert finish(run, "j1", 0.2) == [d.DropJob(job="j1", why=ANY)]  # only one of three can be promoted
    assert finish(run, "j2", 0.3) == [d.DropJob(job="j2", why=ANY)]
    assert statuses(run) == {"finished": 1, "pruned": 2}


def test_a_trial_that_settles_during_a_pause_is_seen_when_the_run_resumes() -> None:
    run = study(Asha(), places=3, trials=30)
    finish(run, "j0", 0.5)
    run.happened(e.UserAsked(at=5.0, wish="pause"))
    assert finish(run, "j1", 0.4) == []
    assert finish(run, "j2", 0.3) == []
    decided = searched(run.tell(e.UserAsked(at=9.0, wish="resume")))
    assert [x.job for x in decided if isinstance(x, d.RunJob)] == ["j2", "j4"]


def test_a_paused_trial_pruned_by_another_policy_is_replaced_by_the_next() -> None:
    run = study(Asha(), places=1, trials=30)
    finish(run, "j0", 0.1)
    finish(run, "j1", 0.2)
    run.order(d.DropJob(job="j0", why="the story"))
    assert [x.job for x in finish(run, "j2", 0.3) if isinstance(x, d.RunJob)] == ["j1"]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_trial_pruned_by_another_policy_takes_no_place_from_those_behind(forgets: bool) -> None:
    run = study(Asha(), places=2, trials=9)
    finish(run, "j0", 0.1)
    finish(run, "j1", 0.2)
    run.order(d.DropJob(job="j0", why="the story"))
    finish(run, "j2", 0.3)
    if forgets:
        run.state.memos.clear()
    decided = finish(run, "j3", 0.4)
    assert not [x for x in decided if isinstance(x, d.DropJob)], "three may be promoted: j1, j2 and j3"


def naive(run, eta: int) -> list[tuple[int, str]]:
    """The trials that may be promoted from each rung, by a scan of `state.settled`."""
    steps = rung_steps(1, eta, run.spec.max_steps)
    ready = []
    for rung, step in enumerate(steps[:-1]):
        rests = [(i, r) for i, r in enumerate(run.state.settled) if r.until_step == step]
        ranked = sorted(rests, key=lambda x: (x[1].value if x[1].status != "failed" else math.inf, x[0]))
        for _, rest in ranked[: len(ranked) // eta]:
            job = run.state.jobs[rest.job]
            if rest.status == "paused" and job.until_step == step:
                ready.append((rung, rest.job))
    return ready


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    trials=st.integers(1, 40),
    places=st.integers(1, 6),
    eta=st.integers(2, 4),
    fails=st.sampled_from((0.0, 0.2)),
)
def test_it_decides_like_a_stateless_scan_of_all_trials(seed, trials, places, eta, fails) -> None:
    """The ladder kept between turns, one rebuilt at every turn, and a naive scan agree; and every study ends."""
    options = {"trials": trials, "places": places, "max_failures": 0}
    kept, rebuilt = study(Asha(eta=eta), **options), study(Asha(eta=eta), **options)
    order, value = random.Random(seed), random.Random(seed + 1)
    while jobs := running(kept):
        job, broken, loss = order.choice(jobs), order.random() < fails, value.choice((value.random(), 0.5))
        rebuilt.state.memos.clear()
        if broken:
            decided = searched(kept.end(job, "failed", step=0))
            again = searched(rebuilt.end(job, "failed", step=0))
        else:
            decided, again = finish(kept, job, loss), finish(rebuilt, job, loss)
        assert decided == again
        if any(isinstance(x, d.AddJob) for x in decided):  # a new trial: so nobody was ready
            assert naive(kept, eta) == []
    assert not [job for job in kept.state.jobs.values() if not job.over]
    assert len(kept.state.jobs) == trials
    if not fails:
        assert statuses(kept)["finished"] >= 1
