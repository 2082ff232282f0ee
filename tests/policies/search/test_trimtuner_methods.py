"""The methods of the recipe: ours, the paper's corrected as an option, and the paper's exactly as printed."""

from __future__ import annotations

from functools import cache

import pytest

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.search.constraints.judge import ENDED
from tests.policies.search.joint_table import STEPS, step_s, study, workload

CORRECTED = ("trimtuner_gp", "trimtuner_dt")
PRINTED = ("trimtuner_gp_as_printed", "trimtuner_dt_as_printed")
FRACTIONS = [1 / 16, 1 / 4, 1 / 2, 1]


@pytest.mark.parametrize("method", CORRECTED)
def test_the_papers_method_corrected_is_an_option(method: str) -> None:
    found = study(options={"method": method}, trials=10)
    thoughts = [x for entry in found.entries() for x in entry.decisions if isinstance(x, d.Think)]
    assert {thought.given["problem"]["method"] for thought in thoughts} == {method}
    assert any("information gain" in str(entry.decisions) for entry in found.entries())
    assert found.answer is not None
    assert found.answer.feasible


def test_without_the_option_it_is_ours_and_another_name_is_refused() -> None:
    assert list(study(options={"method": "trimtuner"}, trials=6).state.jobs) == list(study(trials=6).state.jobs)
    for name in ("gp", "eic", *PRINTED):
        with pytest.raises(SpecError, match=r"options\.method"):
            study(options={"method": name})
    with pytest.raises(SpecError, match="has no such option"):
        study(recipe=PRINTED[0], options={"method": "trimtuner_gp"})


@cache
def printed(recipe: str) -> ss.Study:
    """A limit that many of the trials violate, and code that reports the smaller fractions it passes."""
    return study(
        recipe=recipe,
        fractions=FRACTIONS,
        constraints=["time <= 10m"],
        workload=workload(tells=(1 / 16, 1 / 4, 1 / 2)),
        trials=7,
    )


@pytest.mark.parametrize("recipe", PRINTED)
def test_in_print_one_configuration_is_run_on_half_of_the_data_first_and_passes_the_smaller_sizes(recipe: str) -> None:
    first, second, *_ = printed(recipe).state.jobs.values()
    assert (first.fraction, sorted(first.snapshots)) == (1 / 2, [1 / 16, 1 / 4])
    why = [x.why for entry in printed(recipe).entries() for x in entry.decisions if isinstance(x, d.AddJob)]
    assert ["initial design" in reason for reason in why] == [True] + [False] * 6
    assert second.config != first.config or second.fraction == 1.0


@pytest.mark.parametrize("recipe", PRINTED)
def test_in_print_trials_run_one_at_a_time(recipe: str) -> None:
    running = most = 0
    for entry in printed(recipe).entries():
        running += isinstance(entry.event, e.SegmentStarted) - isinstance(entry.event, e.SegmentEnded)
        most = max(most, running)
    assert most == 1


@pytest.mark.parametrize("recipe", PRINTED)
def test_in_print_no_trial_is_ended_at_a_limit(recipe: str) -> None:
    slow = study(recipe=recipe, fractions=None, constraints=["time <= 5m"], trials=3)
    jobs = list(slow.state.jobs.values())
    assert any(STEPS * step_s(job.config, str(job.config["kind"])) > 300.0 for job in jobs)
    assert all(
        job.status == "finished" and ENDED not in job.tags for job in (*jobs, *printed(recipe).state.jobs.values())
    )
    assert [job.feasible for job in jobs] == [
        STEPS * step_s(job.config, str(job.config["kind"])) <= 300 for job in jobs
    ]
