"""What can never be had is refused before the start, with the way out, in simulations and in live runs alike."""

from __future__ import annotations

from pathlib import Path

import pytest

import shoestring as ss
from shoestring.errors import ShoestringError, SpecError
from shoestring.specs.request import RunRequest

STUDY: dict[str, object] = {
    "space": {"x": ss.uniform(0.0, 1.0)},
    "minimize": "loss",
    "trials": 2,
    "recipe": "random",
    "budget": 5,
    "deadline": "8h",
    "market": "modern",
}
REFUSED = {
    "wind-down longer than a slice": (
        {"wind_down_s": 1000},
        "slice_s=900 leaves no time to work: trials save and stop wind_down_s=1000 seconds before the slice ends, "
        "and a machine may take 50s to start",
        "give slice_s of at least 1167, or a shorter wind_down_s",
    ),
    "slice shorter than the wind-down": ({"slice_s": 61}, "slice_s=61 leaves no time", "give slice_s of at least 189"),
    "slice shorter than the start of a machine": (
        {"market": {"kind": "modern", "provision_s": 1200}},
        "a machine may take 25m to start",
        "give slice_s of at least 1800",
    ),
    "more slots than any machine has": (
        {"slots": 3, "market": {"kind": "modern", "slots": 2}},
        "slots=3 is more than any machine on offer has: the largest, t3.medium spot in us-east-1a, has 2",
        "lower slots to 2",
    ),
    "more slots than this machine has": (
        {"slots": 9, "market": {"slots": 2}, "budget": 0},
        "slots=9 is more than any machine on offer has: the largest, this machine, has 2",
        "lower slots to 2, or give this machine more slots",
    ),
    "a deadline that ends before a machine starts": (
        {"deadline": "45s"},
        "a deadline of 45s leaves no time for a machine: it may take 50s to start",
        "more than 1m",
    ),
    "only spot machines for an on-demand placement": (
        {"market": {"kind": "modern", "machines": {"spot": True}}, "options": {"placement": "on_demand"}},
        "this placement rents on-demand machines only, and none is on offer",
        "allow on-demand machines",
    ),
    "only on-demand machines for a spot placement": (
        {
            "market": {"kind": "auction", "machines": {"spot": False, "names": ["m5.large"]}},
            "options": {"placement": "spottune_as_printed"},
        },
        "this placement rents spot machines only, and none is on offer",
        "allow spot machines",
    ),
    "a machine type that no provider sells": (
        {"market": {"kind": "modern", "machines": ["m5.lareg"]}},
        "machine='m5.lareg' is not in the catalogue of aws",
        "m5.large",
    ),
    "a machine type that the market does not sell": (
        {"market": {"kind": "preemptible", "machines": ["m5.large"]}},
        "machine='m5.large' is not in the catalogue of gcp",
        "n1-standard",
    ),
    "a zone that does not sell it": (
        {"market": {"kind": "modern", "machines": ["m5.large"], "zones": ["us-west-9z"]}},
        "zone='us-west-9z' does not sell m5.large",
        "us-east-1a",
    ),
}


def train(trial: ss.Trial) -> None:
    trial.report(loss=trial["x"])


@pytest.mark.parametrize("runs_code", [False, True], ids=["simulated", "live"])
@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_before_the_start_with_the_way_out(what: str, runs_code: bool, tmp_path: Path) -> None:
    fields, message, hint = REFUSED[what]
    with pytest.raises(SpecError) as refused:
        RunRequest.resolve(
            train, {**STUDY, **fields}, kind="study", source="tune()", runs_code=runs_code, folder=tmp_path
        )
    assert message in str(refused.value)
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"machines": ["c5.large"]}, "prices of c5.large"),
        ({"machines": ["m5.large", "c5.large"]}, "machine='c5.large' is not for sale on this market"),
        ({"machines": ["m5.large"], "zones": ["us-east-1a", "us-east-1b"]}, "zone='us-east-1b' is not for sale"),
    ],
)
def test_what_a_price_file_does_not_have_is_refused(wanted: dict[str, object], message: str, tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "Timestamp,InstanceType,ProductDescription,AvailabilityZone,SpotPrice\n"
        "2024-01-01T00:00:00Z,m5.large,Linux/UNIX,us-east-1a,0.03\n"
        "2024-01-02T00:00:00Z,m5.large,Linux/UNIX,us-east-1a,0.03\n"
    )
    with pytest.raises(ShoestringError, match=message) as refused:
        ss.simulate(**{**STUDY, "market": {"prices": str(prices), **wanted}})  # type: ignore[arg-type]
    assert refused.value.hint


def test_saving_takes_real_time_however_fast_the_clock_runs(tmp_path: Path) -> None:
    def resolved(**fields: object) -> RunRequest:
        fields = {**STUDY, "market": {"kind": "modern", "speedup": 900}, **fields}
        return RunRequest.resolve(train, fields, kind="study", source="tune()", runs_code=True, folder=tmp_path)

    assert resolved().spec.wind_down_s == 225.0
    assert resolved(wind_down_s=10).spec.wind_down_s == 225.0
    assert resolved(wind_down_s=600).spec.wind_down_s == 600.0


def test_where_leases_cannot_be_renewed_a_slice_is_as_long_as_the_deadline(tmp_path: Path) -> None:
    fields = {**STUDY, "on": "inline", "wind_down_s": 1000}
    request = RunRequest.resolve(train, fields, kind="study", source="tune()", runs_code=True, folder=tmp_path)
    assert (request.spec.slice_s, request.spec.wind_down_s) == (8 * 3600.0, 1000.0)
