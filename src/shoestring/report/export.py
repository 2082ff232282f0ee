"""Trials of a study or results of a bag as CSV, JSON or parquet, one record each."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

from shoestring.errors import SpecError, StorageError, need
from shoestring.report.study import Study
from shoestring.units import ACTIVE

FORMATS = ("csv", "json", "parquet")
_FORMULA = re.compile(r"[=@\t\r]|[-+].*[(|!]", re.DOTALL)
"""What spreadsheets run. After a sign only what calls a function, a program or another sheet: "-O3" is ordinary."""


def format_for(path: Path | None, given: str | None) -> str:
    """The given format, otherwise that of the file's suffix."""
    if given:
        return given
    ending = path.suffix.removeprefix(".").lower() if path is not None else "csv"
    if ending not in FORMATS:
        raise SpecError(f"cannot tell the format of {path}", hint=f"add --format {'|'.join(FORMATS)}")
    return ending


def export(study: Study, path: Path, kind: str) -> int:
    """Write all records; returns how many."""
    content = _parquet(_rows(study)) if kind == "parquet" else as_text(study, kind).encode()
    try:
        path.write_bytes(content)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", hint="choose another file with -o") from error
    return len(study.state.jobs)


def as_text(study: Study, kind: str) -> str:
    """CSV or JSON as text, for a pipe."""
    if kind == "json":
        results = {"results": _rows(study)} if study.spec.kind == "bag" else {}
        return to_json({**study.to_plain(), **results})
    if kind != "csv":
        raise SpecError(f"{kind} is not text", hint="give a file with -o FILE")
    rows = [{_cell(name): _cell(value) for name, value in row.items()} for row in _rows(study)]
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]) if rows else ["trial"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _rows(study: Study) -> list[dict[str, Any]]:
    """A bag's jobs are identified by their parameters, a study's trials by their numbers."""
    return list(study.results) if study.spec.kind == "bag" else study.trials.to_plain()


def _cell(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula gets an apostrophe before it, which makes it text there."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def to_json(plain: Any) -> str:
    """JSON that every reader accepts, and every terminal can show: non-finite numbers become null, characters that a
    terminal would obey are escaped."""
    text = json.dumps(_finite(plain), indent=2, ensure_ascii=False, allow_nan=False)
    return ACTIVE.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def _finite(plain: Any) -> Any:
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else None
    if isinstance(plain, dict):
        return {key: _finite(value) for key, value in plain.items()}
    return [_finite(value) for value in plain] if isinstance(plain, list | tuple) else plain


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    pyarrow = need("pyarrow", extra="tables")
    parquet = need("pyarrow.parquet", extra="tables")
    columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
    table = pyarrow.table({key: _arrow_column(pyarrow, values) for key, values in columns.items()})
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def _arrow_column(pyarrow: Any, values: list[Any]) -> Any:
    """A choice may mix numbers and text, a parquet column may not: such a column becomes text."""
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
        return pyarrow.array([None if value is None else str(value) for value in values])
