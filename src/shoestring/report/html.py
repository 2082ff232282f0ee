"""A study as one self-contained HTML page, without scripts or external files.

Plots come first. All of them are made from one pass over the journal and from its fold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice, takewhile
from pathlib import Path

from shoestring.errors import StorageError
from shoestring.report.explain import ExplanationLine, tell
from shoestring.report.plots.figure import STYLE as FIGURE_STYLE
from shoestring.report.plots.journal_pass import Chronicle
from shoestring.report.plots.learning_curves import learning_curves
from shoestring.report.plots.machines import machine_bars
from shoestring.report.plots.spending import SpendingLimits, money_over_time
from shoestring.report.plots.svg import escaped, shortened
from shoestring.report.study import Study
from shoestring.report.trials import SHOWN_IN_NOTEBOOKS, Trials

LOG_HEAD, LOG_TAIL = 1000, 1000
"""Lines of a long decision log that a page holds: its beginning and its end."""

_STYLE = (
    FIGURE_STYLE
    + """
html { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 56em; margin: 2em auto; padding: 0 1em; color: var(--ink);
  background: var(--paper) }
h1 { font-size: 1.6em; margin: 0 } h2 { font-size: 1.15em; margin: 1.6em 0 .3em } .status { color: var(--soft) }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: .2em 1.2em .2em 0; border-bottom: 1px solid var(--hair) }
th { text-align: left; font-weight: 600 } td { font-variant-numeric: tabular-nums }
.receipt :is(th, td):nth-child(n + 3) { text-align: right } .receipt tbody tr:last-child { font-weight: 600 }
summary { cursor: pointer } pre { background: var(--panel); padding: 1em; overflow-x: auto; font-size: 13px }
"""
)


def page(study: Study) -> str:
    """The page as text. Everything the user wrote is escaped."""
    state, spec, receipt = study.state, study.spec, study.receipt
    chronicle = Chronicle()
    so_far = takewhile(lambda entry: entry.seq <= state.seq, study.entries())  # an active run has written more by now
    log = _log(tell(chronicle.watching(so_far)))
    best = (
        f"{escaped(study.without_best[:1].upper() + study.without_best[1:])}{'.' if study.without_best else ''}"
        if study.best is None
        else (f"<strong>Best</strong> {escaped(study.best)}")
    )
    plots = [
        money_over_time(
            chronicle, SpendingLimits(budget_usd=spec.budget_usd, deadline_s=spec.deadline_s), str(receipt.charged)
        ),
        machine_bars(chronicle, spec.deadline_s),
    ]
    if spec.metric is not None:
        plots.insert(
            0, learning_curves(spec, state.jobs.values(), None if state.best is None else state.jobs[state.best])
        )
    status = f"{study.status}, {study.status_detail}" if study.status_detail else study.status
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escaped(study.name)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escaped(study.name)}</h1>"
        f"<p class='status'>{escaped(status)}</p>"
        f"<p>{best}</p>{_answer(study)}{''.join(plots)}"
        f"<h2>Receipt</h2><div class='wide receipt'>{receipt._repr_html_()}</div>"
        f"<h2>Trials</h2>{_trials(study)}"
        f"<h2>Decisions</h2><details><summary>every decision and its reason</summary><pre>{log}</pre></details>"
        "</body></html>\n"
    )


def write_page(study: Study, path: Path) -> None:
    try:
        path.write_text(page(study), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", hint="choose another file") from error


def _answer(study: Study) -> str:
    """The recommended configuration, where constraints or data fractions make it differ from the best trial."""
    differs = study.spec.constraints or study.spec.fractions
    answer = study.answer if differs else None
    return "" if answer is None else f"<p><strong>Use</strong> {escaped(answer)}</p>"


def _trials(study: Study) -> str:
    """Best first, trials without a value last."""
    ranked = sorted(study.trials, key=lambda row: study.spec.rank(row.value))
    table = Trials(ranked[:SHOWN_IN_NOTEBOOKS], study.metric)._repr_html_()
    rest = len(ranked) - SHOWN_IN_NOTEBOOKS
    more = f"<p>and {rest:,} more: shoestring export writes them all</p>" if rest > 0 else ""
    return f"<div class='wide'>{table}</div>{more}"


def _log(lines: Iterable[ExplanationLine]) -> str:
    """The decision log; only the beginning and the end of a very long one."""
    rest = iter(lines)
    head = list(islice(rest, LOG_HEAD))
    tail: deque[ExplanationLine] = deque(maxlen=LOG_TAIL)
    behind = 0
    for line in rest:
        behind += 1
        tail.append(line)
    omitted = behind - len(tail)
    gap = [f"... {omitted:,} lines omitted: shoestring report --log prints them all"] if omitted else []
    return "\n".join(escaped(shortened(str(line), 300)) for line in (*head, *gap, *tail))
