"""Whole simulated runs of TrimTuner: joint spaces, data fractions, constraints, and the final answer."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from msgspec.structs import replace

import shoestring as ss
from shoestring import recipes
from shoestring.controller import run
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Job
from shoestring.kernel.view import RunView
from shoestring.policies.search.constraints.judge import ENDED
from shoestring.policies.search.trimtuner.problem import MEMORY, observed
from shoestring.space.constraints import Constraint
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.world.sim.workload import Workload
from tests.policies.search.joint_table import STEPS, error, step_s, study, workload
from tests.properties.test_invariants import check_invariants
from tests.studies import Case, play, random_case


def decided(found: ss.Study, kind: type) -> list[d.Decision]:
    return [x for entry in found.entries() for x in entry.decisions if isinstance(x, kind)]


@pytest.fixture(scope="module")
def found() -> ss.Study:
    return study(trials=24)


def test_the_answer_satisfies_every_constraint_and_is_close_to_the_optimum(found: ss.Study) -> None:
    answer, best = found.answer, found.best
    assert answer is not None
    assert best is not None
    assert answer.feasible
    assert best.config["width"] <= 40
    assert error(answer.config) <= 1.2 * min(error({"rate": rate, "width": 32}) for rate in range(-5, 0))
    assert [str(outlook.constraint) for outlook in answer.constraints] == ["cost <= $0.05", "latency <= 10"]


def test_it_learns_from_parts_of_the_data_and_proves_on_all_of_it(found: ss.Study) -> None:
    jobs = list(found.state.jobs.values())
    assert {job.fraction for job in jobs[:4]} == {1 / 16}
    assert any(job.fraction == 1.0 for job in jobs)
    assert all(job.feasible is None for job in jobs if job.fraction < 1.0)


def test_what_a_trial_took_is_its_training_and_nothing_else_at_the_price_of_its_machines(found: ss.Study) -> None:
    prices = {listing.offer.machine: listing.on_demand_usd_per_hour for listing in found.spec.listings}
    for job in found.state.jobs.values():
        kind = str(job.config["kind"])
        assert job.seconds == pytest.approx(STEPS * step_s(job.config, kind, job.fraction), rel=1e-6)
        most = job.seconds / 3600 * prices[kind] * int(job.config["machines"] or 1)
        assert job.usd is not None
        assert 0.0 < job.usd <= most * (1 + 1e-9)
        assert job.rented is not None
        assert job.rented.machine == kind


def test_suggestions_are_computed_in_the_background_while_the_run_continues(found: ss.Study) -> None:
    thoughts = decided(found, d.Think)
    assert thoughts
    assert all(thought.modelled_s > 0 for thought in thoughts)
    assert thoughts[0].given["prices"]["usd_per_hour"]
    pending = [len(thought.given["pending"]) for thought in thoughts]
    assert max(pending) >= 1, "no question knew of a trial under way"


def test_the_same_seed_is_the_same_run(found: ss.Study) -> None:
    assert list(study(trials=24).entries()) == list(found.entries())


def test_prices_are_those_of_the_moment() -> None:
    """A market whose prices move: what the optimiser receives moves too."""
    moving = study(market="auction", deadline="5d", trials=10)
    told = {str(thought.given["prices"]["usd_per_hour"]) for thought in decided(moving, d.Think)}
    assert len(told) > 1


def test_a_trial_that_violates_a_constraint_is_pruned_there_and_not_tried_again() -> None:
    strict = study(constraints=["time <= 10m"], fractions=None, trials=12)
    ended = [job for job in strict.state.jobs.values() if ENDED in job.tags]
    assert ended
    for job in ended:
        assert job.status == "pruned"
        assert job.feasible is False
        assert 600.0 < (job.seconds or 0.0) < 605.0
        assert STEPS * step_s(job.config, str(job.config["kind"])) > 600.0
    assert strict.best is not None
    assert strict.state.jobs[strict.state.best].seconds <= 600.0


def test_what_trials_tell_of_smaller_parts_on_their_way_is_learned_from() -> None:
    given = {"rate": -1, "width": 16, "machines": 1, "kind": "m5.large"}
    told = study(workload=workload(tells=(1 / 16, 1 / 4)), trials=5, given=[given])
    of_one = [seen for seen in observed(RunView(told.state)) if seen["config"] == given]
    assert [seen["fraction"] for seen in of_one] == [1 / 16, 1 / 4, 1.0]
    shares = [seen["told"]["seconds"] / of_one[-1]["told"]["seconds"] for seen in of_one]
    assert shares == pytest.approx([1 / 16, 1 / 4, 1.0], rel=1e-3)
    costs = [seen["told"]["cost"] for seen in of_one]
    assert costs == pytest.approx([share * costs[-1] for share in shares], rel=1e-6)


def test_without_a_feasible_trial_the_nearest_miss_is_reported() -> None:
    hopeless = study(constraints=["error <= 0.01"], fractions=None, trials=6)
    assert hopeless.best is None
    answer = hopeless.answer
    assert answer is not None
    assert not answer.feasible
    assert "nearest miss" in answer.why
    assert "error <= 0.01" in answer.why


def test_a_constraint_on_an_unreported_metric_is_reported_at_the_end() -> None:
    blind = study(constraints=["memory <= 3"], trials=6)
    assert blind.best is None
    assert blind.answer is not None
    assert "no trial has reported memory" in blind.answer.why


def test_a_run_that_ends_before_a_full_trial_answers_with_a_prediction() -> None:
    short = study(trials=5)
    answer = short.answer
    assert answer is not None
    if all(job.fraction < 1.0 for job in short.state.jobs.values()):
        assert not answer.measured
        assert all(not outlook.measured and 0.0 <= outlook.probability <= 1.0 for outlook in answer.constraints)


def test_patience_ends_a_run_that_improves_no_more() -> None:
    patient = study(trials=40, options={"patience": 5}, fractions=None, constraints=None)
    assert len(patient.state.jobs) < 40
    with pytest.raises(SpecError, match="patience"):
        study(options={"patience": 0})


def test_a_space_of_one_configuration_is_run_and_answered() -> None:
    single = study(space={"rate": -3, "width": 16, "kind": ss.machine_type("m5.large")}, constraints=["cost <= $9"])
    assert single.best is not None
    assert [job.fraction for job in single.state.jobs.values()][-1] == 1.0


def test_trials_that_diverge_or_fail_do_not_stop_the_search() -> None:
    def curve(config: dict[str, object]) -> object:
        return lambda _: {"error": math.nan if config["rate"] == -3 else 0.1, "latency": 1.0}

    broken = Workload(
        curve=curve,
        seconds_per_step=lambda *_: 60.0,
        trouble=lambda config, *_: "fail" if config["rate"] == -1 else None,
    )
    space = {"rate": ss.integer(-5, -1), "width": ss.choice(16, 32)}
    survived = study(space=space, workload=broken, trials=20, max_failures=0, constraints=["latency <= 2"])
    assert survived.best is not None
    statuses = {job.status for job in survived.state.jobs.values()}
    assert "failed" in statuses


def test_what_the_user_gave_is_run_first_on_all_of_the_data() -> None:
    given = {"rate": -1, "width": 64, "machines": 1, "kind": "m5.large"}
    first: Job = next(iter(study(given=[given], trials=2).state.jobs.values()))
    assert (first.config, first.fraction) == (given, 1.0)


def test_machines_that_cost_nothing_leave_only_time_to_be_learned() -> None:
    free = study(
        space={"rate": ss.integer(-5, -1), "width": ss.choice(16, 32)},
        market="free",
        workload=Workload(
            curve=lambda config: lambda _: {"error": error(config), "latency": 1.0}, seconds_per_step=lambda *_: 60.0
        ),
        trials=8,
    )
    assert free.answer is not None
    assert free.answer.feasible
    assert next(outlook.value for outlook in free.answer.constraints) == 0.0


# -- a controller that dies --------------------------------------------------------------------------------------------
def a_case() -> Case:
    """The first of the random studies that is long enough, with TrimTuner as its search."""
    case = random_case(random.Random("trimtuner/1"))
    spec = replace(
        case.spec,
        recipe="trimtuner",
        options={"parallel": 2},
        trials=6,
        max_steps=3,
        fractions=(0.25, 1.0),
        constraints=(Constraint("cost", 5.0), Constraint("seconds", 40000.0)),
        budget_usd=30.0,
    )
    return dataclasses.replace(case, spec=spec, denial_share=0.3, trouble_share=0.05)


def test_a_run_resumed_at_any_entry_ends_the_same() -> None:
    case = a_case()
    state, whole = play(case)
    entries = list(whole.read())
    assert state.revocations
    assert 40 <= len(entries) <= 160
    assert len(state.jobs) == 6
    asked = [entry.seq for entry in entries if any(isinstance(x, d.Think) for x in entry.decisions)]
    heard = [entry.seq for entry in entries if isinstance(entry.event, e.ThoughtReady)]
    for cut in sorted({1, *asked, *heard, len(entries) - 1}):
        journal = MemoryJournal()
        for entry in entries[:cut]:
            journal.append(entry, wait=False)
        run(case.world(), journal, recipes.build(case.spec), BudgetAndDeadline(), first=[])
        assert list(journal.read()) == entries


@pytest.mark.parametrize("number", range(8))
def test_random_markets_and_constraints_keep_every_promise(number: int) -> None:
    rng = random.Random(f"limits/{number}")
    case = random_case(rng)
    spec = replace(
        case.spec,
        recipe="trimtuner",
        options={"checkpointing": case.spec.options["checkpointing"]},
        fractions=(0.25, 1.0),
        constraints=(Constraint("cost", 10 ** rng.uniform(-3, 0)), Constraint("loss", 1.0)),
    )
    check_invariants(dataclasses.replace(case, spec=spec))


def test_what_the_method_remembers_is_on_record(found: ss.Study) -> None:
    assert any(MEMORY in job.tags for job in found.state.jobs.values())
