"""The receipt: the cost of a run per machine type, in amounts that add up.

Pure: a function of the state. Every column is rounded as a whole and the cents are apportioned by largest remainder, so
that the rows shown sum to the total shown; rounding each row by itself would sometimes be off by a cent, which is
exactly what people check.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from shoestring.kernel.records import Account
from shoestring.kernel.state import RunState
from shoestring.kernel.types import LOCAL
from shoestring.kernel.view import RunView
from shoestring.policies.checkpointing.notice_limit import notice_warnings
from shoestring.report.failures import failure_warnings
from shoestring.report.machine_time import billed_time
from shoestring.units import show_duration, show_usd

CENTS = 2
FINER = 4
"""Decimal places of a receipt, and of one whose total is below a dollar, where cents would hide most of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Dollars as shown: a whole number of the smallest unit, so that sums are exact."""

    units: int
    places: int = CENTS

    @property
    def usd(self) -> float:
        return self.units / float(10**self.places)

    def __str__(self) -> str:
        whole, rest = divmod(self.units, 10**self.places)
        return f"${whole:,}.{rest:0{self.places}d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRow:
    """One instance type, spot or on-demand, over all zones it was rented in."""

    provider: str
    machine: str
    spot: bool
    leases: int
    hours: float
    trained_hours: float
    revoked: int
    refunded: Amount
    charged: Amount
    on_demand: Amount
    """What the same hours would have cost on on-demand machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    name: str
    rows: tuple[ReceiptRow, ...]
    leases: int
    hours: float
    """Of machines. The six below add up to it; `report.machine_time` says what they are."""
    trained_hours: float
    starting_hours: float
    restoring_hours: float
    saving_hours: float
    redone_hours: float
    idle_hours: float
    revocations: int
    refunded: Amount
    charged: Amount
    on_demand: Amount
    budget_usd: float
    deadline_s: float
    used_s: float
    lost_steps: int
    lost_s: float
    denied: int
    refused: int
    unused: int
    """Machines that were up and ended before a trial ran on them."""
    open_machines: int
    open_usd: float
    """The most that machines still held can add."""
    warnings: tuple[str, ...] = ()
    """What may cost more than it should, one sentence each."""

    @property
    def summary(self) -> str:
        """The receipt in one line."""
        return (
            f"{self.charged} of {show_usd(self.budget_usd)} · {_count(self.revocations, 'preemption')}, "
            f"{_work_lost(self)} · on-demand: {self.on_demand}"
        )

    def __str__(self) -> str:
        return "\n".join([*_table(self), *self.notes()])

    def cells(self) -> list[tuple[str, ...]]:
        """The table as text, a line per instance type and the total last; `TITLES` is its header."""
        lines = [(row.machine, _kind(row), *_figures(row, row.revoked)) for row in self.rows]
        return [*lines, ("total", "", *_figures(self, self.revocations))]

    def notes(self) -> list[str]:
        """What the table does not show."""
        left = show_usd(max(0.0, self.budget_usd - self.charged.usd))
        money = (
            f"{self.charged} of {show_usd(self.budget_usd)} spent, {left} left" if self.budget_usd else "free of charge"
        )
        notes = [
            f"{money} · {show_duration(self.used_s)} of {show_duration(self.deadline_s)} used",
            f"{_count(self.revocations, 'preemption')}, {_work_lost(self)} · "
            f"{_count(self.denied, 'request')} denied by the market, {self.refused} refused by the guard",
        ]
        if self.budget_usd and self.hours:
            notes.insert(1, _used(self))
        if self.unused:
            notes.append(f"{_count(self.unused, 'machine')} ended before a trial ran on {_them(self.unused)}")
        if self.open_machines:
            notes.append(f"{_count(self.open_machines, 'machine')} still held: at most {show_usd(self.open_usd)} more")
        return [*notes, *(f"warning: {warning}" for warning in self.warnings)]

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(title)}</th>" for title in TITLES)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in self.cells())
        notes = "<br>".join(escape(note) for note in self.notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{notes}</p>"

    def to_plain(self) -> dict[str, Any]:
        """For JSON: the amounts as shown, in dollars."""
        return {**_plain(self), "rows": [_plain(row) for row in self.rows]}


def receipt_of(state: RunState) -> Receipt:
    """The receipt of a run, finished or not, as of its last event."""
    spec = state.the_spec
    groups: dict[tuple[str, str, bool], list[Account]] = {}
    for offer, account in state.accounts.items():
        groups.setdefault((offer.provider, offer.machine, offer.spot), []).append(account)
    keys = sorted(groups, key=lambda key: (-_sum(groups[key], "charged_usd"), key))
    total_usd = math.fsum(account.charged_usd for account in state.accounts.values())
    places = FINER if 0 < total_usd < 1 else CENTS
    charged, refunded, on_demand = (
        _column([_sum(groups[key], field) for key in keys], places)
        for field in ("charged_usd", "refunded_usd", "on_demand_usd")
    )
    rows = tuple(
        ReceiptRow(
            provider=key[0],
            machine=key[1],
            spot=key[2],
            leases=sum(account.leases for account in groups[key]),
            hours=_sum(groups[key], "seconds") / 3600,
            trained_hours=math.fsum(account.time.trained_s for account in groups[key]) / 3600,
            revoked=sum(account.revoked for account in groups[key]),
            charged=charged[1][i],
            refunded=refunded[1][i],
            on_demand=on_demand[1][i],
        )
        for i, key in enumerate(keys)
    )
    held = billed_time(state)
    return Receipt(
        name=spec.name,
        rows=rows,
        leases=sum(row.leases for row in rows),
        hours=math.fsum(row.hours for row in rows),
        trained_hours=held.used.trained_s / 3600,
        starting_hours=held.used.starting_s / 3600,
        restoring_hours=held.used.restoring_s / 3600,
        saving_hours=held.used.saving_s / 3600,
        redone_hours=held.used.redone_s / 3600,
        idle_hours=held.idle_s / 3600,
        revocations=state.revocations,
        charged=charged[0],
        refunded=refunded[0],
        on_demand=on_demand[0],
        budget_usd=spec.budget_usd,
        deadline_s=spec.deadline_s,
        used_s=max(0.0, state.now - state.started_at),
        lost_steps=state.lost_steps,
        lost_s=state.lost_s,
        denied=state.denials,
        refused=state.refusals,
        unused=sum(account.unused for account in state.accounts.values()),
        open_machines=len(state.leases),
        open_usd=state.reserved_usd,
        warnings=(*notice_warnings(RunView(state)), *failure_warnings(state)),
    )


def apportion(amounts: Sequence[float], places: int) -> tuple[int, list[int]]:
    """The rounded total, and whole units for each amount that sum to it: each is off by less than one unit."""
    scale = 10**places
    total = round(math.fsum(amounts) * scale)
    shares = [math.floor(amount * scale) for amount in amounts]
    by_remainder = sorted(range(len(amounts)), key=lambda i: shares[i] - amounts[i] * scale)
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return total, shares


def _column(amounts: Sequence[float], places: int) -> tuple[Amount, list[Amount]]:
    total, shares = apportion(amounts, places)
    return Amount(units=total, places=places), [Amount(units=share, places=places) for share in shares]


def _sum(accounts: Sequence[Account], field: str) -> float:
    return math.fsum(getattr(account, field) for account in accounts)


def _plain(of: Receipt | ReceiptRow) -> dict[str, Any]:
    values = {field.name: getattr(of, field.name) for field in fields(of)}
    return {
        f"{name}_usd" if isinstance(value, Amount) else name: value.usd if isinstance(value, Amount) else value
        for name, value in values.items()
    }


# -- for people --------------------------------------------------------------------------------------------------------
TITLES = ("machine", "kind", "leases", "hours", "trained", "preempted", "refunds", "paid", "on-demand")


def _kind(row: ReceiptRow) -> str:
    if row.provider == LOCAL:
        return "yours"
    return "spot" if row.spot else "on-demand"


def _figures(of: Receipt | ReceiptRow, revoked: int) -> tuple[str, ...]:
    hours = (f"{of.hours:.2f}", f"{of.trained_hours:.2f}")
    return (str(of.leases), *hours, str(revoked), str(of.refunded), str(of.charged), str(of.on_demand))


def _table(receipt: Receipt) -> list[str]:
    lines = [TITLES, *receipt.cells()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(TITLES))]
    text = ["  ".join(_padded(line, widths)) for line in lines]
    return [text[0], *text[1:-1], "-" * len(text[0]), text[-1]]


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Text left-aligned, numbers right-aligned."""
    cells = zip(line, widths, strict=True)
    return [cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(cells)]


def _used(receipt: Receipt) -> str:
    """57% of the paid time trained; 23% starting, 12% idle, 8% redone"""
    parts = {
        "starting": receipt.starting_hours,
        "restoring": receipt.restoring_hours,
        "saving": receipt.saving_hours,
        "redone": receipt.redone_hours,
        "idle": receipt.idle_hours,
    }
    _, (trained, *shares) = apportion([100 * x / receipt.hours for x in (receipt.trained_hours, *parts.values())], 0)
    rest = sorted(zip(shares, parts, strict=True), reverse=True)
    shown = ", ".join(f"{share}% {name}" for share, name in rest if share)
    return f"{trained}% of the paid time trained{f'; {shown}' if shown else ''}"


def _work_lost(receipt: Receipt) -> str:
    if not receipt.lost_steps:
        return "no step lost"
    return f"{show_duration(receipt.lost_s)} of work lost ({_count(receipt.lost_steps, 'step')})"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
