"""The results of a bag as a table: parameters, status, metrics, time and cost of each job.

Parameters and metrics keep the user's names, so the table can be joined with the one the jobs came from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, overload

from shoestring.errors import need
from shoestring.report.trials import SHOWN_IN_NOTEBOOKS, TrialRow, aligned
from shoestring.units import show_number, show_text
from shoestring.worker.arguments import LAST_LINE

_ABOUT_THE_RUN = ("attempts", "revocations", "seconds", "cost_usd", "machines", "detail")
_COLUMNS = ("job", "status", "output", *_ABOUT_THE_RUN)


class Results(Sequence[dict[str, Any]]):
    """One flat record per job, in the order in which they were given; all have the same keys."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Results:
        return Results(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def to_pandas(self) -> Any:
        """A DataFrame; needs pandas."""
        return need("pandas", extra="tables").DataFrame(list(self._rows))

    def __repr__(self) -> str:
        return "\n".join("  ".join(cells).rstrip() for cells in aligned(self._cells())) if self._rows else "no jobs yet"

    def _repr_html_(self) -> str:
        shown = self[:SHOWN_IN_NOTEBOOKS]
        head, *body = (
            [[escape(cell) for cell in cells] for cells in shown._cells()] if self._rows else [["no jobs yet"]]
        )
        rows = "".join(f"<tr><td>{'</td><td>'.join(cells)}</td></tr>" for cells in body)
        rest = len(self) - len(shown)
        more = f"<p>and {rest} more: .to_pandas() has them all</p>" if rest > 0 else ""
        return f"<table><thead><tr><th>{'</th><th>'.join(head)}</th></tr></thead><tbody>{rows}</tbody></table>{more}"

    def _cells(self) -> list[list[str]]:
        return [
            [show_text(name) for name in self._rows[0]],
            *([_shown(value) for value in row.values()] for row in self._rows),
        ]


def results_of(rows: Sequence[TrialRow], folder: Path | None) -> Results:
    """The table of these jobs; their output is read from the run's folder."""
    params = dict.fromkeys(name for row in rows for name in row.config)
    metrics = dict.fromkeys(name for row in rows for name in row.metrics)
    param_column = {name: f"param.{name}" if name in _COLUMNS else name for name in params}
    metric_column = {name: f"metric.{name}" if name in _COLUMNS or name in params else name for name in metrics}
    return Results(
        {
            "job": row.number,
            **{column: row.config.get(name) for name, column in param_column.items()},
            "status": row.status,
            **{column: row.metrics.get(name) for name, column in metric_column.items()},
            "output": None if folder is None or row.segment is None else _last_line(folder, row.segment),
            "attempts": row.attempts,
            "revocations": row.revocations,
            "seconds": row.seconds,
            "cost_usd": row.cost_usd,
            "machines": " ".join(row.machines),
            "detail": row.detail,
        }
        for row in rows
    )


def _last_line(folder: Path, segment: str) -> str | None:
    """The last line that a command printed, reports left out; None if there is none, or it cannot be read."""
    try:
        return (folder / "segments" / segment / LAST_LINE).read_text(errors="replace")
    except OSError:
        return None


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else show_number(value)
    return "-" if value is None else show_text(str(value))
