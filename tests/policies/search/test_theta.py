"""Theta: all trials part of the way, the best by prediction to max_steps; diverged trials and plateaus stop sooner."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shoestring import recipes
from shoestring.errors import SpecError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.policy import Waker
from shoestring.kernel.view import RunView
from shoestring.policies.search.theta.policy import EXPECTED, RESTED, STAGES, Theta, boundaries
from shoestring.policies.search.theta.stopping import StopHopeless
from shoestring.testing.story import SPEC, Story
from tests.policies.search.studies import finish, play_out, running, searched, statuses, study


def report_curve(run: Story, job: str, values: list[float], *, first: int = 1, **metrics: float) -> list[d.Decision]:
    """A running job reports one value a step, having saved once: what is decided, to the first that is anything?"""
    for step, value in enumerate(values, first):
        report = run.report(job, step, value)
        if step == first:
            run.happened(run.save(job, step))
        decided = searched_or_paused(run.tell(replace(report, metrics=report.metrics | metrics)))
        if decided:
            return decided
    return []


def searched_or_paused(decisions: list[d.Decision]) -> list[d.Decision]:
    return [x for x in decisions if isinstance(x, d.AddJob | d.TagJob | d.RunJob | d.DropJob | d.PauseJob)]


def promoted(decisions: list[d.Decision]) -> list[tuple[str, int]]:
    return [(x.job, x.until_step) for x in decisions if isinstance(x, d.RunJob)]


# -- all to theta ------------------------------------------------------------------------------------------------------
def test_all_are_trained_to_theta_and_the_best_by_prediction_are_promoted() -> None:
    run = study(Theta(mcnt=2), places=4, trials=4, max_steps=10)
    assert {job.until_step for job in run.state.jobs.values()} == {7}
    for job, value in (("j0", 0.5), ("j1", 0.1), ("j2", 0.4)):
        assert not promoted(finish(run, job, value))
    decided = finish(run, "j3", 0.3)
    assert promoted(decided) == [("j1", 10), ("j3", 10)]
    assert [x.why for x in decided if isinstance(x, d.RunJob)] == [
        "predicted final value 0.1, ranked 1 of 4",
        "predicted final value 0.3, ranked 2 of 4",
    ]
    assert statuses(run)["pruned"] == 2


def test_a_trial_that_falls_overtakes_one_that_stands_still() -> None:
    """That is what the prediction is for: at theta the one that will win is still behind."""
    run = study(Theta(mcnt=1, curve="ensemble", plateau=0.0), places=2, trials=2, max_steps=40)
    report_curve(run, "j0", [0.40 + 0.001 * (step % 2) for step in range(28)])
    run.happened(run.save("j0", 28))
    run.end("j0")
    report_curve(run, "j1", [1.0 - 0.02 * step for step in range(28)])
    run.happened(run.save("j1", 28))
    assert run.state.jobs["j1"].values[-1] > run.state.jobs["j0"].values[-1]
    decided = searched(run.end("j1"))
    assert promoted(decided) == [("j1", 40)]
    assert [x.job for x in decided if isinstance(x, d.DropJob)] == ["j0"]


def test_a_trial_with_mcnt_others_ahead_is_pruned_at_once() -> None:
    run = study(Theta(mcnt=1), places=3, trials=3)
    finish(run, "j0", 0.2)
    decided = finish(run, "j1", 0.5)
    assert [x for x in decided if isinstance(x, d.DropJob)] == [
        d.DropJob(job="j1", why="pruned: predicted final value 0.5, another trial is predicted to end better")
    ]


def test_what_was_expected_is_kept_with_the_trial() -> None:
    run = study(Theta(mcnt=1), places=2, trials=2)
    finish(run, "j0", 0.25)
    assert run.state.jobs["j0"].tags[EXPECTED] == 0.25
    finish(run, "j1", None)
    assert run.state.jobs["j1"].tags[EXPECTED] is None


def test_with_theta_one_all_are_trained_to_the_end() -> None:
    run = study(Theta(theta=1.0), places=2, trials=5)
    play_out(run, lambda job, _step: int(job[1:]) / 10, random.Random(1))
    assert statuses(run) == {"finished": 5}


@pytest.mark.parametrize(("direction", "best"), [("minimize", {"j0", "j1", "j2"}), ("maximize", {"j6", "j7", "j8"})])
def test_the_study_ends_with_the_best_trained_to_the_end(direction, best) -> None:
    run = study(Theta(), places=4, trials=9, direction=direction)
    play_out(run, lambda job, _step: int(job[1:]) / 10, random.Random(1))
    assert statuses(run) == {"finished": 3, "pruned": 6}
    assert {job.id for job in run.state.jobs.values() if job.status == "finished"} == best


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), trials=st.integers(1, 14), places=st.integers(1, 6), mcnt=st.integers(1, 4))
def test_it_decides_the_same_when_it_has_forgotten_everything(seed, trials, places, mcnt) -> None:
    options = {"trials": trials, "places": places, "max_failures": 0}
    kept, rebuilt = (study(Theta(mcnt=mcnt), **options) for _ in range(2))
    order = random.Random(seed)
    while jobs := running(kept):
        job, loss = order.choice(jobs), order.choice([order.random(), math.nan, None])
        rebuilt.state.memos.clear()
        if order.random() < 0.1:
            assert kept.end(job, "failed", step=0) == rebuilt.end(job, "failed", step=0)
        else:
            assert finish(kept, job, loss) == finish(rebuilt, job, loss)
    assert not [job for job in kept.state.jobs.values() if not job.over]


# -- on the way --------------------------------------------------------------------------------------------------------
def test_a_trial_that_diverges_is_pruned_at_its_report() -> None:
    run = study(Theta(), places=2, trials=2, max_steps=50)
    assert report_curve(run, "j0", [0.9, math.nan]) == [
        d.DropJob(job="j0", why="pruned: diverged, loss is nan at step 2"),
    ]
    assert [type(x) for x in report_curve(run, "j1", [0.9, 0.8, 30000.0])] == [d.DropJob]


def test_a_trial_on_a_plateau_stops_before_theta_and_waits() -> None:
    run = study(Theta(mcnt=1), places=2, trials=2, max_steps=50)
    decided = report_curve(run, "j0", [1 / step for step in range(1, 11)] + [0.1] * 20)
    assert [type(x) for x in decided] == [d.TagJob, d.PauseJob]
    stopped = run.state.jobs["j0"].tags[RESTED]
    assert 15 <= stopped < 35
    run.happened(run.save("j0", stopped))
    assert not promoted(searched(run.end("j0", "halted", step=stopped)))
    assert promoted(finish(run, "j1", 0.4)) == [("j0", 50)]


def test_a_trial_that_never_saved_is_not_stopped_on_a_plateau() -> None:
    run = study(Theta(mcnt=1), places=1, trials=1, max_steps=50)
    for step in range(1, 31):
        assert not run.tell(run.report("j0", step, 0.1))


# -- stages ------------------------------------------------------------------------------------------------------------
def test_a_trial_that_reports_its_learning_rate_declares_its_stages() -> None:
    run = study(Theta(), places=1, trials=1, max_steps=50)
    report_curve(run, "j0", [0.9], stage=0.1)
    for step, stage in ((2, 0.1), (3, 0.01), (4, 0.01), (5, 0.001)):
        report = run.report("j0", step, 0.9)
        run.tell(replace(report, metrics=report.metrics | {"stage": stage}))
    assert run.state.jobs["j0"].tags[STAGES] == "1:0.1 3:0.01 5:0.001"
    assert boundaries(run.state.jobs["j0"]) == (3, 5)


def test_steps_that_were_lost_are_trained_in_their_stage_again() -> None:
    run = study(Theta(), places=1, trials=1, max_steps=50)
    report_curve(run, "j0", [0.9, 0.8], stage=0.1)
    report_curve(run, "j0", [0.5], first=3, stage=0.01)
    report = run.report("j0", 2, 0.8)  # back from the checkpoint of step 1
    run.tell(replace(report, metrics=report.metrics | {"stage": 0.1}))
    assert boundaries(run.state.jobs["j0"]) == ()


# -- the hopeless ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Adaptive:
    """The rule and the search, in the order of the recipe, as the one policy that `study` takes."""

    rule: StopHopeless
    wants: ClassVar[frozenset[Waker]] = Theta.wants

    def decide(self, state: RunView, event: e.Event) -> Iterator[d.Decision]:
        for policy in (self.rule, Theta(plateau=0.0)):
            yield from policy.decide(state, event)


def three_good_trials(confidence: float = 0.95) -> Story:
    run = study(Adaptive(StopHopeless(confidence=confidence)), places=4, trials=4, max_steps=50)
    for number in range(3):
        report_curve(run, f"j{number}", [0.1 * number + 0.1 + 1 / step for step in range(1, 31)])
    return run


def test_a_trial_that_can_no_longer_be_among_the_best_is_pruned_on_its_way() -> None:
    run = three_good_trials()
    (dropped,) = report_curve(run, "j3", [3.0 + 0.01 * (step % 2) for step in range(30)])
    assert isinstance(dropped, d.DropJob)
    assert run.state.jobs["j3"].step == 10  # as soon as it may be judged
    assert dropped.why.startswith("pruned: predicted final value 3")
    assert " by step 10; " in dropped.why


def test_a_trial_is_not_compared_with_trials_whose_learning_rate_has_fallen_already() -> None:
    """The best of four comes last. Before its own fall it looks worse than the others do after theirs."""
    run = study(Adaptive(StopHopeless()), places=4, trials=4, max_steps=50)
    for number, level in enumerate((0.3, 0.4, 0.5, 0.2)):
        fallen = [level + (1.0 if step < 20 else 0.0) + 1 / step for step in range(1, 36)]
        assert report_curve(run, f"j{number}", fallen) == []


def test_a_trial_that_may_still_be_among_the_best_continues() -> None:
    run = three_good_trials()
    assert report_curve(run, "j3", [0.25 + 1.2 / step for step in range(1, 31)]) == []


def test_without_enough_others_no_trial_is_pruned() -> None:
    run = study(Adaptive(StopHopeless()), places=3, trials=4, max_steps=50)
    for number in range(2):
        report_curve(run, f"j{number}", [0.1 + 1 / step for step in range(1, 31)])
    assert report_curve(run, "j2", [9.0 + 0.01 * (step % 2) for step in range(30)]) == []


def test_a_higher_confidence_prunes_later() -> None:
    stopped = []
    for confidence in (0.8, 0.999):
        run = three_good_trials(confidence)
        report_curve(run, "j3", [0.4 + 2 / step for step in range(1, 31)])
        stopped.append(run.state.jobs["j3"].step)
    assert stopped[0] < stopped[1]


# -- the recipes -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("recipe", "options", "said"),
    [
        ("theta", {"theta": 1.5}, "options.theta=1.5 is out of range"),
        ("theta", {"mcnt": 0}, "options.mcnt=0 is too small"),
        ("theta", {"curve": "earlycurv"}, "options.curve='earlycurv' is unknown"),
        ("theta", {"confidence": 0.9}, "the recipe theta has no such option"),
        ("theta_adaptive", {"confidence": 0.2}, "options.confidence=0.2 is out of range"),
    ],
)
def test_bad_options_are_errors(recipe, options, said) -> None:
    with pytest.raises(SpecError, match=said):
        recipes.build(replace(SPEC, recipe=recipe, options=options))
