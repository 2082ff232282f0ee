"""Whole simulated runs of the elastic searches: money and time hold, nothing is left running, widths are the plan's."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace as with_fields
from functools import cache

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.errors import SpecError
from shoestring.kernel import decisions as d
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.view import RunView
from shoestring.storage.journal.memory import MemoryJournal
from tests.studies import Case, play, random_case

PLANNED = ("seer", "elastic_grid", "elastic_successive_halving", "elastic_hyperband")
ELASTIC = (*PLANNED, "seer_as_printed", "hypersched")
OF_OTHERS = ("startup", "t_min_s")
"""Options of the recipe that was sampled first."""


def elastic_case(number: int, names: tuple[str, ...] = ELASTIC) -> Case | None:
    """A random study of an elastic recipe, on more machines than the usual; None if it cannot be."""
    rng = random.Random(f"elastic/{number}")
    case = random_case(rng)
    spec = replace(
        case.spec,
        recipe=rng.choice(names),
        options={name: value for name, value in case.spec.options.items() if name not in OF_OTHERS},
        max_machines=rng.randint(1, 12),
        max_steps=rng.randint(1, 60),
        trials=rng.randint(1, 40),
    )
    try:
        recipes.build(spec)
    except SpecError:
        return None
    return with_fields(case, spec=spec)


@cache
def elastic_study(number: int) -> tuple[Case, RunState, MemoryJournal] | None:
    """The case and its run, which two tests look at; None if it cannot be."""
    case = elastic_case(number)
    return None if case is None else (case, *play(case))


def widths_given(journal: MemoryJournal) -> set[int]:
    return {x.slots for entry in journal.read() for x in entry.decisions if isinstance(x, d.StartSegment)}


def widths_planned(spec: RunSpec, state: RunState) -> set[int]:
    search = recipes.build(spec)[0]
    stages = search.plan(RunView(state)).stages  # type: ignore[attr-defined]
    return {bracket.slots * spec.slots for stage in stages for bracket in stage.brackets}


@pytest.mark.parametrize("batch", range(4))
def test_budget_and_deadline_hold_and_nothing_is_left_running(batch: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(60 * batch, 60 * (batch + 1)):
        study = elastic_study(number)
        if study is None:
            continue
        case, state, _ = study
        assert state.concluded, number
        assert not state.leases, number
        assert not state.segments, number
        assert state.spent_usd <= case.spec.budget_usd * (1 + 1e-9), number
        assert state.now <= state.deadline_at + 1e-6, number
        seen[case.spec.recipe] += 1
    assert sum(seen.values()) >= 20, seen


def test_no_trial_trains_on_a_width_the_plan_does_not_have() -> None:
    """Trials wider than planned may come from money that is left; they are nu times the widest again."""
    counted = 0
    for number in range(150):
        case = elastic_case(number, PLANNED)
        if case is None:
            continue
        state, journal = play(case)
        planned, given = widths_planned(case.spec, state), widths_given(journal)
        wider = {2**doubling * max(planned) for doubling in range(1, 6)} if case.spec.recipe == "seer" else set()
        assert given <= planned | wider, number
        counted += 1
    assert counted >= 40


def test_the_random_studies_are_eventful() -> None:
    seen: Counter[str] = Counter()
    for number in range(200):
        study = elastic_study(number)
        if study is None:
            seen["refused as infeasible"] += 1
            continue
        _, state, journal = study
        seen["revoked"] += state.revocations > 0
        seen["more than one width"] += len(widths_given(journal)) > 1
        seen["out of time"] += "deadline" in state.ending
        seen["last stage"] += "the last, is over" in state.ending
        seen["all over early"] += "all remaining trials have finished" in state.ending
    assert all(count >= 5 for count in seen.values()), seen
    assert len(seen) == 6
