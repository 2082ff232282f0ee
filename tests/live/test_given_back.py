"""A live run whose machines are all given back unused ends by itself, with a status and a sentence."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec

import shoestring as ss
from shoestring.report.study import Study
from shoestring.runs.folder import run_folder
from shoestring.runs.launch import launch, resume_run
from shoestring.specs.request import RunRequest


def train(trial: ss.Trial) -> None:
    trial.report(loss=trial["x"])


def test_it_stops_renting_releases_everything_and_has_failed(tmp_path: Path) -> None:
    fields = {
        "name": "barren",
        "space": {"x": ss.uniform(0.0, 1.0)},
        "minimize": "loss",
        "trials": 2,
        "recipe": "random",
        "budget": 5,
        "deadline": "8h",
        "max_machines": 2,
        "market": {"kind": "modern", "speedup": 300, "machines": ["m5.large"]},
        "store": tmp_path,
    }
    request = RunRequest.resolve(train, fields, kind="study", source="tune()", runs_code=True, folder=Path.cwd())
    # As an earlier version may have recorded it: today it is refused.
    spec = msgspec.structs.replace(request.spec, slice_s=900.0, wind_down_s=1000.0)
    study = launch(dataclasses.replace(request, spec=spec))
    assert study.status == "failed"
    assert study.status_detail.startswith("renting has stopped: the last ")
    assert study.receipt.unused == study.receipt.leases <= 20
    assert not study.state.leases
    folder = run_folder("barren", tmp_path)
    assert Study.in_folder(folder).status_detail == study.status_detail
    assert resume_run(folder).status == "failed"  # it is over: nothing is rented again
