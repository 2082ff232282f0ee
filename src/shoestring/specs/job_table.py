"""The jobs of a bag as a table: a file with a column per parameter and a row per job, or values on the command line.

Files carry no types, so a whole column decides: numbers if every cell is one, true and false likewise, else text as
written. `007` is text and not the number seven, and so are then the other cells of its column.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from shoestring.errors import SpecError
from shoestring.space.space import check_names
from shoestring.specs.build import MOST_JOBS
from shoestring.values import Config, Value

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_LINES = ".jsonl"

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_RANGE = re.compile(r"(-?[0-9]{1,18})\.\.(-?[0-9]{1,18})(?:\.\.(-?[0-9]{1,18}))?")


def with_table(fields: Mapping[str, object], folder: Path) -> dict[str, object]:
    """The fields with the rows of `table` as `given`: the file is not needed afterwards."""
    if "table" not in fields:
        return dict(fields)
    for other in ("over", "given"):
        if other in fields:
            raise SpecError(f"both table and {other} are given", hint="the jobs come from one of them: leave one out")
    table = fields["table"]
    if not isinstance(table, str | Path) or not str(table):
        raise SpecError(f"table={table!r} names no file", hint="for example table='params.csv'")
    rest = {field: value for field, value in fields.items() if field != "table"}
    return {**rest, "given": read_table(folder / table)}


def read_table(file: Path) -> list[Config]:
    """The rows of a .csv, .tsv or .jsonl file, each a configuration."""
    kind = file.suffix.lower()
    if kind not in DELIMITERS and kind != JSON_LINES:
        raise SpecError(f"{file} is not a table", hint="its name must end in .csv, .tsv or .jsonl")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"there is no table {file}", hint=f"looked in {file.parent.resolve()}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{file} is not text: byte {error.start} is not UTF-8", hint="save it as UTF-8") from None
    except OSError as error:
        raise SpecError(
            f"{file} cannot be read: {error.strerror}", hint="check that it is a file you may read"
        ) from None
    rows = list(_json_rows(text, file)) if kind == JSON_LINES else _columns(text, file, DELIMITERS[kind])
    if not rows:
        raise SpecError(f"{file} has no rows, so there are no jobs", hint="give it one row for each job")
    if len(rows) > MOST_JOBS:
        raise SpecError(f"{file} has more than {MOST_JOBS:,} rows", hint="split it into several bags")
    return rows


def typed(texts: Sequence[str]) -> list[Value]:
    """The values of a column, typed by all of its cells together. An empty cell is None."""
    filled = [text for text in texts if text]
    for parse in (_number, _TRUTH.get):
        if all(parse(text) is not None for text in filled):
            return [parse(text) if text else None for text in texts]
    return [text or None for text in texts]


def listed(text: str, field: str) -> list[Value]:
    """Values as written on the command line: `280,300,320`, `0..99`, `0..100..10`, or `1,3,5..7`."""
    try:
        parts = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        raise SpecError(f"{field}={text!r} cannot be split at its commas", hint="write it on one line") from None
    texts: list[str] = []
    for part in parts:
        match = _RANGE.fullmatch(part.strip())
        texts += _counted(match, field) if match else [part.strip()]
    if not any(texts):
        raise SpecError(f"{field} lists no values, so there are no jobs", hint="for example temp=280,300 or seed=0..99")
    return typed(texts)


def _counted(match: re.Match[str], field: str) -> list[str]:
    """A range with both ends, as shells and schedulers count."""
    first, last = int(match[1]), int(match[2])
    step = int(match[3] or (1 if last >= first else -1))
    numbers = range(first, last + (1 if step > 0 else -1), step) if step else range(0)
    if not numbers:
        raise SpecError(f"{field}={match[0]} is an empty range", hint="write it as FIRST..LAST or FIRST..LAST..STEP")
    if len(numbers) > MOST_JOBS:
        raise SpecError(f"{field}={match[0]} makes more than {MOST_JOBS:,} jobs", hint="split it into several bags")
    return [str(number) for number in numbers]


def _number(text: str) -> int | float | None:
    """None also for what a configuration cannot hold: twenty digits are more likely an identifier than a number."""
    if _WHOLE.fullmatch(text):
        return whole if len(text) <= 20 and -(2**63) <= (whole := int(text)) < 2**63 else None
    if not _NUMBER.fullmatch(text):
        return None
    return number if math.isfinite(number := float(text)) else None


def _columns(text: str, file: Path, delimiter: str) -> list[Config]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[list[str]] = []
    names: list[str] = []
    try:
        for cells in reader:
            row = [cell.strip() for cell in cells]
            if not any(row):
                continue
            if not names:
                names = _names(row, file)
            elif len(row) != len(names):
                raise SpecError(
                    f"{file}, line {reader.line_num}: {len(row)} values, and the first line names {len(names)} columns",
                    hint="give every row one value for each column; one with a comma in it needs quotes",
                )
            else:
                rows.append(row)
    except csv.Error as error:
        raise SpecError(f"{file}, line {reader.line_num}: {error}", hint="check the quotes") from None
    columns = [typed(column) for column in zip(*rows, strict=True)]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _names(header: list[str], file: Path) -> list[str]:
    for number, name in enumerate(header):
        if name in header[:number]:
            raise SpecError(f"{file}: two columns are named {name!r}", hint="a column is a parameter: rename one")
    try:
        check_names(dict.fromkeys(header))
    except SpecError as error:
        raise SpecError(
            f"{file}, first line: {error}",
            hint="the first line names the parameters, each of letters, digits and _, as in {name} of the command",
        ) from None
    return header


def _json_rows(text: str, file: Path) -> Iterator[Config]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise SpecError(
                f"{file}, line {number} is not a JSON object", hint='one per line: {"temp": 280, "seed": 1}'
            )
        yield row
