"""Jobs from a table: types of columns, and messages for invalid tables."""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.specs.job_table import listed, read_table, typed
from shoestring.values import as_value
from shoestring.worker.arguments import as_text


def table(folder: Path, text: str, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


# -- what cells mean ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("column", "meaning"),
    [
        (["280", "-3", "0"], [280, -3, 0]),
        (["280", "300.5", "1e-3", ".5"], [280, 300.5, 0.001, 0.5]),
        (["true", "False"], [True, False]),
        (["true", "1"], ["true", "1"]),
        (["007", "10"], ["007", "10"]),
        (["1.0", "nan"], ["1.0", "nan"]),
        (["1", "", "3"], [1, None, 3]),
        (["a", ""], ["a", None]),
        (["", ""], [None, None]),
        (["99999999999999999999"], ["99999999999999999999"]),
        (["1e999"], ["1e999"]),
        (["+5", "1_000"], ["+5", "1_000"]),
        (["9" * 5000], ["9" * 5000]),
    ],
)
def test_a_column_is_typed_as_a_whole(column: list[str], meaning: list[object]) -> None:
    found = typed(column)
    assert found == meaning
    assert [type(value) for value in found] == [type(value) for value in meaning]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20), max_size=5))
def test_any_column_becomes_values_that_a_configuration_can_hold(column: list[str]) -> None:
    for cell, value in zip(column, typed(column), strict=True):
        assert as_value(value) == value
        if isinstance(value, str):
            assert value == cell


def test_a_row_is_a_job_and_a_column_a_parameter(tmp_path: Path) -> None:
    text = '\ufefftemp, seed,note\r\n280,1,"warm, dry"\r\n\r\n300,2,cold\r\n'
    assert read_table(table(tmp_path, text)) == [
        {"temp": 280, "seed": 1, "note": "warm, dry"},
        {"temp": 300, "seed": 2, "note": "cold"},
    ]


def test_tabs_and_json_lines_are_tables_too(tmp_path: Path) -> None:
    rows = [{"temp": 280, "hot": False}, {"temp": 300, "hot": True}]
    assert read_table(table(tmp_path, "temp\thot\n280\tfalse\n300\ttrue\n", "jobs.tsv")) == rows
    lines = "\n".join(json.dumps(row) for row in rows)
    assert read_table(table(tmp_path, lines, "jobs.jsonl")) == rows


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "whole": st.integers(-(2**63), 2**63 - 1),
                "number": st.floats(allow_nan=False, allow_infinity=False),
                "truth": st.booleans(),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
def test_a_written_table_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([list(rows[0]), *([as_text(row[name]) for name in rows[0]] for row in rows)])
    assert read_table(table(tmp_path_factory.getbasetemp(), out.getvalue())) == rows


# -- tables that cannot be used ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no rows"),
        ("temp,seed\n", "no rows"),
        ("\n\n  \n", "no rows"),
        ("temp,seed\n280\n", "line 2: 1 values, and the first line names 2 columns"),
        ("temp,seed\n280,1\n\n280,1,9\n", "line 4: 3 values"),
        ("temp,temp\n1,2\n", "two columns are named 'temp'"),
        ("temp,Temp\n1,2\n", "same environment variable"),
        ("temp,\n1,2\n", "first line: '' cannot name a parameter"),
        ("learning rate\n1\n", "'learning rate' cannot name a parameter"),
        ("280,1\n300,2\n", "'280' cannot name a parameter"),
        ("a;b\n1;2\n", "'a;b' cannot name a parameter"),
        ('temp\n"280\n', "line 2"),
    ],
)
def test_a_table_that_cannot_be_used_says_where_it_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_table(table(tmp_path, text))
    assert words in str(caught.value)
    assert "jobs.csv" in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("line", ["3", "[1]", "{", "null", "[" * 100_000, "nonsense"])
def test_a_line_that_is_not_a_json_object_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(SpecError, match="line 2 is not a JSON object"):
        read_table(table(tmp_path, f'{{"a": 1}}\n{line}\n', "jobs.jsonl"))


def test_files_that_are_not_tables(tmp_path: Path) -> None:
    for name, words in (("jobs.xlsx", "is not a table"), ("none.csv", "there is no table"), (".", "is not a table")):
        with pytest.raises(SpecError, match=words):
            read_table(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(SpecError, match="cannot be read"):
        read_table(tmp_path / "folder.csv")
    (tmp_path / "latin.csv").write_bytes("a\nä\n".encode("latin-1"))
    with pytest.raises(SpecError, match="not UTF-8"):
        read_table(tmp_path / "latin.csv")


@given(st.binary(max_size=60), st.sampled_from(["jobs.csv", "jobs.tsv", "jobs.jsonl"]))
def test_any_bytes_give_jobs_or_a_spec_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    with suppress(SpecError):
        assert read_table(path)


# -- as the jobs of a bag ----------------------------------------------------------------------------------------------
def test_the_rows_are_in_the_journal_and_the_file_is_not_needed_again(tmp_path: Path) -> None:
    path = table(tmp_path, "temp,seed\n280,1\n300,2\n")
    bag = ss.simulate(table=path, budget="$5", deadline="6h", name="from-a-table")
    path.unlink()
    assert bag.spec.kind == "bag"
    assert bag.spec.given == ({"temp": 280, "seed": 1}, {"temp": 300, "seed": 2})
    assert [row["temp"] for row in bag.results] == [280, 300]


def test_a_study_takes_its_first_trials_from_a_table(tmp_path: Path) -> None:
    path = table(tmp_path, "lr\n0.25\n0.5\n")
    study = ss.simulate(
        table=path, space={"lr": ss.uniform(0, 1)}, minimize="loss", trials=3, budget="$5", deadline="6h", name="begun"
    )
    assert study.spec.kind == "study"
    assert [row.config["lr"] for row in study.trials][:2] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"over": {"a": [1]}}, "both table and over"),
        ({"given": [{"a": 1}]}, "both table and given"),
        ({"table": 3}, "names no file"),
        ({"table": ""}, "names no file"),
        ({"command": "echo {tmp}"}, "{tmp} is not a parameter"),
    ],
)
def test_fields_that_contradict_a_table_are_refused(tmp_path: Path, fields: dict[str, object], words: str) -> None:
    path = table(tmp_path, "temp\n1\n")
    with pytest.raises(SpecError) as caught:
        ss.simulate(**{"table": path, "kind": "bag", "budget": "$5", "deadline": "6h", **fields})
    assert words in str(caught.value)


# -- values at a prompt ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("280,300,320", [280, 300, 320]),
        ("0..4", [0, 1, 2, 3, 4]),
        ("0..10..5", [0, 5, 10]),
        ("3..1", [3, 2, 1]),
        ("-2..0", [-2, -1, 0]),
        ("1,3,5..7", [1, 3, 5, 6, 7]),
        ("0.1, 0.2", [0.1, 0.2]),
        ('"a,b",c', ["a,b", "c"]),
        ("../data", ["../data"]),
        ("1..b", ["1..b"]),
    ],
)
def test_values_on_the_command_line(text: str, values: list[object]) -> None:
    assert listed(text, "x") == values


@pytest.mark.parametrize("text", ["", ",", "0..9..-1", "0..9..0", "0..99999999", "a\nb"])
def test_invalid_values_on_the_command_line(text: str) -> None:
    with pytest.raises(SpecError, match=r"--over x"):
        listed(text, "--over x")
