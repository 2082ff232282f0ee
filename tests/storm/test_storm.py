"""Short storms. The long form is `python -m tests.storm --signals N`."""

import pytest

from tests.storm.case import cases, twin
from tests.storm.storm import storm

CASES = cases(seed=1)


@pytest.mark.parametrize(
    ("case", "signals"),
    [(CASES[0], 8), *(pytest.param(case, 12, marks=pytest.mark.heavy) for case in CASES[1:8])],
    ids=str,
)
def test_a_run_in_a_storm_loses_doubles_orphans_and_overspends_nothing(tmp_path, case, signals):
    outcome = storm(case, tmp_path / "run", twin(case, tmp_path / "twin"), signals)
    assert outcome.signals >= signals
    assert outcome.broken == []
