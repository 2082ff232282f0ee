"""Options of placements: the revocation model, rotation, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

import shoestring as ss
from shoestring import recipes
from shoestring.errors import DataError, SpecError
from shoestring.models.revocation.frequency import EmpiricalFrequency
from shoestring.models.revocation.lstm import RevPred
from shoestring.models.revocation.rates import InterruptionPrior
from shoestring.models.revocation.saved import AnyModel, SavedModel, encoded
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.cheapest_step import CheapestStep
from shoestring.policies.placement.revocation_risk import AssumedRate, FromPrices
from shoestring.policies.placement.spottune.as_printed import AsPrinted
from shoestring.policies.placement.spottune.refund_seeking import RefundSeeking
from shoestring.policies.placement.spottune.rotation import Rotation, Stay
from shoestring.policies.search.theta.policy import Theta
from shoestring.recipes.options.model_files import MODEL_FILE, refuse_hindsight
from shoestring.runs.amend import check_same
from shoestring.testing.story import SPEC


def build(recipe: str = "random", **options):
    return recipes.build(replace(SPEC, recipe=recipe, options=options))


def saved(path: Path, model: AnyModel) -> str:
    told = SavedModel(name="a model", trained_from=0.0, trained_until=1.0, examples=9, revoked_share=0.1, model=model)
    path.write_bytes(encoded(told))
    return str(path)


# -- which placement ---------------------------------------------------------------------------------------------------
def test_each_placement_has_its_own_default_revocation_model() -> None:
    assert build(placement="cheapest_step")[1] == CheapestStep(risk=AssumedRate())
    assert build(placement="refund_seeking")[1] == RefundSeeking(risk=FromPrices())
    assert build(placement="spottune_as_printed")[1] == AsPrinted(risk=FromPrices())
    assert build(placement="cheapest_step", revocations="rises")[1] == CheapestStep(risk=FromPrices())
    by_level = CheapestStep(risk=FromPrices(EmpiricalFrequency()))
    assert build(placement="cheapest_step", revocations="frequency")[1] == by_level
    assert build(placement="spottune_as_printed", revocations="assumed")[1] == AsPrinted(risk=AssumedRate())


def test_rotation_comes_before_the_placement_that_finds_the_next_machine() -> None:
    assert build(placement="cheapest", rotate="1h")[1:3] == [Rotation(Stay()), Cheapest()]
    assert build(placement="cheapest_step", rotate=1800)[1:3] == [
        Rotation(Stay(1800.0, lead_s=90.0, done_soon_s=300.0)),
        CheapestStep(),
    ]


def test_spottune_as_printed_is_the_papers_search_and_the_papers_placement() -> None:
    search, placement, *_ = build("spottune_as_printed")
    assert search == Theta(curve="earlycurve")
    assert placement == AsPrinted()
    assert build("spottune_as_printed", curve="slaq")[0] == Theta(curve="slaq")


@pytest.mark.parametrize(
    ("recipe", "options", "says"),
    [
        ("random", {"placement": "on_demand", "rotate": "1h"}, "on-demand machines are never preempted"),
        ("random", {"placement": "slack", "rotate": "1h"}, "decides by itself when to move"),
        ("random", {"placement": "refund_seeking", "rotate": "1h"}, "within its first hour anyway"),
        ("spottune_as_printed", {"rotate": "1h"}, "after an hour anyway"),
        ("flex", {"placement": "cheapest", "rotate": "1h"}, "trials of recipe flex share machines or use several"),
        ("hypersched", {"placement": "cheapest", "rotate": "1h"}, "share machines or use several"),
        ("rubberband", {"placement": "cheapest", "rotate": "1h"}, "share machines or use several"),
        ("random", {"placement": "cheapest", "rotate": 60}, "options.rotate=60 is too short"),
        ("random", {"placement": "cheapest", "rotate": "often"}, "options.rotate='often' is not a length of time"),
        ("flex", {"placement": "spottune_as_printed"}, "gives each trial a machine of its own"),
        ("random", {"placement": "cheapest", "revocations": "frequency"}, "uses no revocation model"),
        ("random", {"placement": "cheapest_step", "revocations": 3}, "options.revocations=3 is not text"),
    ],
)
def test_contradictory_options_are_refused_with_the_reason(recipe: str, options: dict, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        build(recipe, **options)
    assert says in str(caught.value)
    assert caught.value.hint or "length of time" in says


# -- a value that was renamed ------------------------------------------------------------------------------------------
STUDY = {"space": {"x": ss.uniform(0.0, 1.0)}, "minimize": "loss", "trials": 2, "max_steps": 2, "market": "auction"}


def test_the_former_name_of_a_placement_is_accepted_but_not_shown() -> None:
    assert build(placement="as_printed") == build(placement="spottune_as_printed")
    with pytest.raises(SpecError) as caught:
        build(placement="nonsense")
    assert "refund_seeking" in caught.value.hint
    assert "as_printed" not in caught.value.hint
    with pytest.raises(SpecError, match="placement='spottune_as_printed' gives each trial"):
        build("flex", placement="as_printed")


@pytest.mark.parametrize("value", ["as_printed", "spottune_as_printed"])
def test_a_new_run_records_the_current_name_of_its_placement(value: str) -> None:
    study = ss.simulate(**STUDY, budget=5, deadline="6h", recipe="asha", options={"placement": value, "eta": 2})
    assert study.spec.options == {"placement": "spottune_as_printed", "eta": 2}


def test_an_old_run_that_recorded_the_former_name_is_the_same_run() -> None:
    old = replace(SPEC, options={"placement": "as_printed", "eta": 2})
    check_same(old, replace(SPEC, options={"placement": "spottune_as_printed", "eta": 2}))
    check_same(replace(SPEC, options={"placement": "spottune_as_printed", "eta": 2}), old)
    for other in ({"placement": "slack", "eta": 2}, {"placement": "spottune_as_printed", "eta": 3}, {"eta": 2}):
        with pytest.raises(SpecError, match=r"which differs in options \(was"):
            check_same(old, replace(SPEC, options=other))


# -- a model from a file -----------------------------------------------------------------------------------------------
def test_a_fitted_model_is_read_when_the_policies_are_made(tmp_path: Path) -> None:
    path = saved(tmp_path / "model.json", InterruptionPrior(otherwise_per_hour=0.5))
    placement = build("spottune", revocations=path)[1]
    assert placement == RefundSeeking(risk=FromPrices(InterruptionPrior(otherwise_per_hour=0.5)))


def test_a_file_that_is_not_there_or_no_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing.json' cannot be read: No such file or directory"):
        build("spottune", revocations=str(tmp_path / "nothing.json"))
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(DataError, match="is not a saved revocation model"):
        build("spottune", revocations=str(tmp_path / "broken.json"))


def test_a_net_not_trained_on_a_market_of_the_run_is_refused_before_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="this model was not trained on small spot in a"):
        build("spottune", revocations=saved(tmp_path / "net.json", RevPred(nets={})))


def test_a_run_records_which_model_it_began_with(tmp_path: Path) -> None:
    saved(tmp_path / "model.json", EmpiricalFrequency())
    spec = replace(SPEC, recipe="spottune", options={"revocations": "model.json"})
    kept = MODEL_FILE.pinned(spec, tmp_path)
    assert MODEL_FILE.pinned(kept, tmp_path / "elsewhere") == kept
    assert recipes.build(kept)[1] == RefundSeeking(risk=FromPrices(EmpiricalFrequency()))
    saved(tmp_path / "model.json", EmpiricalFrequency(prior_chance=0.5))
    with pytest.raises(DataError, match="is not the revocation model that this run began with"):
        recipes.build(kept)
    (tmp_path / "model.json").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        recipes.build(kept)


def test_a_model_that_has_seen_the_prices_to_be_played_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "model.json", InterruptionPrior())
    spec = replace(SPEC, recipe="spottune", options={"revocations": path})
    refuse_hindsight(spec, start=1.0)
    with pytest.raises(SpecError, match="it would know the future"):
        refuse_hindsight(spec, start=0.5)
    refuse_hindsight(replace(spec, options={"revocations": "frequency"}), start=0.5)


def test_values_that_name_no_file_are_not_pinned() -> None:
    for options in ({}, {"revocations": "assumed"}, {"revocations": "frequency"}, {"revocations": 3}):
        spec = replace(SPEC, options=options)
        assert MODEL_FILE.pinned(spec, Path("/nowhere")) == spec
