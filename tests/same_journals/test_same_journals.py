"""Same words, same seed, same journal, byte for byte, whatever the code inside is called by now.

The journals beside this file were recorded before modules, classes and sentences were renamed. What may differ is in
`lines.MASKED`, by name.
"""

from __future__ import annotations

import json

import pytest

from shoestring.recipes import describe
from tests.same_journals.cases import CASES, EXACT
from tests.same_journals.lines import MASKED, journal_of, masked
from tests.same_journals.record import LIBRARIES, libraries, path_of, recorded


@pytest.mark.parametrize("case", CASES)
def test_a_journal_is_what_it_was(case: str) -> None:
    then = json.loads(LIBRARIES.read_text())
    if case not in EXACT and libraries() != then:
        more = " ".join(feature for feature in libraries()["simd"].split() if feature not in then["simd"].split())
        way = f"; compare with NPY_DISABLE_CPU_FEATURES='{more}' OPENBLAS_CORETYPE=Haswell" if more else ""
        pytest.skip(f"its decisions rest on the last digits of {then}; here: {libraries()}{way}")
    before = [masked(line) for line in recorded(case)]
    now = [masked(line) for line in journal_of(CASES[case])]
    for number, (old, new) in enumerate(zip(before, now, strict=False), start=1):
        assert new == old, f"entry {number} of {case}"
    assert len(now) == len(before)


def test_every_recipe_is_compared() -> None:
    assert {recipe.name for recipe in describe()} <= {words["recipe"] for words in CASES.values()}


def test_what_is_kept_is_what_is_compared() -> None:
    assert {path.name for path in path_of("asha").parent.glob("*.gz")} == {path_of(case).name for case in CASES}


def test_only_what_is_named_is_masked() -> None:
    line = (
        b'{"turn":{"event":{"at":1.0},"decisions":[{"type":"AddJob/1","why":"a","job":"j0","placement":"cheapest"}]}}'
    )
    assert masked(line) == line.replace(b'"why":"a",', b"")
    other = line.replace(b'"a"', b'"b"')
    assert masked(other) == masked(line)
    assert masked(line.replace(b"j0", b"j1")) != masked(line)
    assert masked(line.replace(b"cheapest", b"slack")) != masked(line)
    assert set(MASKED) == {"why", "question", "placement", "reason"}
