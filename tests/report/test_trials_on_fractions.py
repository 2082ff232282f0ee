"""Data fractions in the tables of trials: a column where there are any, and none where there are not."""

from __future__ import annotations

import csv
import io

import pytest

from shoestring.report.export import as_text
from shoestring.report.study import Study
from shoestring.world.sim.workload import SnapshotAt
from tests import fractions as parts
from tests.world.runs import simulate, simulated_world


def study_on(*fractions: float) -> Study:
    world = simulated_world(snapshots=lambda _: [SnapshotAt(0.25, 0.25, {"loss": 0.5})])
    _, record = simulate(world, parts.policies(x=0.5), fractions=fractions, max_steps=2)
    return Study(lambda: record)


@pytest.fixture(scope="module")
def study() -> Study:
    return study_on(0.25, 1.0)


def test_the_table_has_a_column_for_the_data_fraction(study: Study) -> None:
    titles, *lines = repr(study.trials).splitlines()
    assert titles.split()[:4] == ["trial", "status", "data", "step"]
    assert [line.split()[2] for line in lines] == ["0.25", "1"]
    assert "<th>data</th>" in study.trials._repr_html_()
    assert "<td>0.25</td>" in study.trials._repr_html_()


def test_exports_have_it_too(study: Study) -> None:
    assert [row["fraction"] for row in study.trials.to_plain()] == [0.25, 1.0]
    rows = list(csv.DictReader(io.StringIO(as_text(study, "csv"))))
    assert [row["fraction"] for row in rows] == ["0.25", "1.0"]


def test_without_fractions_the_column_is_left_out() -> None:
    whole = study_on(1.0)
    assert "data" not in repr(whole.trials).splitlines()[0].split()
    assert "<th>data</th>" not in whole.trials._repr_html_()
    assert "fraction" not in whole.trials.to_plain()[0]
    assert "data fraction" not in str(whole.log())


def test_why_shows_the_data_fraction_and_results_on_smaller_ones(study: Study) -> None:
    assert "started on small spot in a, data fraction 0.25" in str(study.why(0))
    assert "reported a result for data fraction 0.25: loss 0.5" in str(study.why(1))


def test_the_best_is_a_trial_on_all_of_the_data(study: Study) -> None:
    assert study.best is not None
    assert study.best.number == 1
