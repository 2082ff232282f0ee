"""What holds for every study: budget, deadline, bills, receipts, checkpoints. For property tests and the fuzzer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.fold.evolve import evolve
from shoestring.kernel.history import Entry
from shoestring.kernel.state import RunState
from shoestring.kernel.step import replay
from shoestring.market.billing import billing_rule
from shoestring.market.prices import PriceTrace
from shoestring.report.receipt import receipt_of
from tests.studies import START, Case

ROUNDING = 1e-12
"""Of sums of floating-point numbers, relative."""


def broken_guarantees(case: Case, state: RunState, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """The name of each guarantee that does not hold, and what was seen instead."""
    if not state.concluded:
        yield "ends", f"the run stopped in phase {state.phase}"
    yield from _money(case, state, entries)
    late_s = max(entry.event.at for entry in entries) - (START + case.spec.deadline_s)
    if late_s > 0:
        yield "deadline", f"an event {late_s:g} s after the deadline"
    yield from _nothing_open(state, entries)
    yield from _not_too_many(case, entries)
    yield from _unused(case, state, entries)
    yield from _resumed_from_the_latest(entries)
    times = [entry.event.at for entry in entries]
    if times != sorted(times):
        yield "order", "times in the journal go back"


def _money(case: Case, state: RunState, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    billed = math.fsum(entry.event.charged_usd for entry in entries if isinstance(entry.event, e.LeaseEnded))
    if billed > case.spec.budget_usd * (1 + ROUNDING):
        yield "budget", f"billed {billed!r} of {case.spec.budget_usd!r}"
    by_hand = billed_by_hand(case, entries)
    if not math.isclose(billed, by_hand, rel_tol=ROUNDING, abs_tol=1e-9):
        yield "bill", f"billed {billed!r}, by hand {by_hand!r}"
    receipt = receipt_of(state)
    if not math.isclose(receipt.charged.usd, billed, abs_tol=0.5 / 10**receipt.charged.places + 1e-9):
        yield "receipt", f"the receipt says {receipt.charged}, billed {billed!r}"
    if sum(row.charged.units for row in receipt.rows) != receipt.charged.units:
        yield "receipt", "its rows do not add up to its total"
    yield from _time(state)


def _time(state: RunState) -> Iterator[tuple[str, str]]:
    """What machines did takes no longer than they were held: the rest, idle time, is never negative."""
    for offer, account in state.accounts.items():
        if account.time.used_s > account.seconds * (1 + 1e-9) + 1e-3:
            yield "time", f"{offer} was held for {account.seconds:g} s and used for {account.time.used_s:g} s"
        if min(msgspec.structs.astuple(account.time)) < 0:
            yield "time", f"{offer}: {account.time}"


def billed_by_hand(case: Case, entries: Sequence[Entry]) -> float:
    """The sum of all invoices, computed again from the trace and not from the run's own records."""
    book = {offer: PriceTrace(offer, times, prices) for offer, times, prices in case.traces}
    listings = {listing.offer: listing for listing in case.spec.listings}
    requests = {x.lease: x for entry in entries for x in entry.decisions if isinstance(x, d.RequestLease)}
    granted = {x.event.lease: x.event.at for x in entries if isinstance(x.event, e.LeaseGranted)}
    charges = []
    for entry in entries:
        if isinstance(entry.event, e.LeaseEnded) and entry.event.lease in granted:
            request = requests[entry.event.lease]
            listing = listings[request.offer]
            trace = book.get(request.offer) or PriceTrace(request.offer, [0.0], [listing.on_demand_usd_per_hour])
            invoice = billing_rule(listing.billing).charge(
                granted[entry.event.lease],
                entry.event.at,
                trace,
                entry.event.cause,
                ceiling_usd_per_hour=listing.ceiling_usd_per_hour(request.max_usd_per_hour),
            )
            charges.append(invoice.charged_usd)
    return math.fsum(charges)


def _nothing_open(state: RunState, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    if state.segments:
        yield "open", f"{len(state.segments)} segments are open at the end"
    open_leases: set[str] = set(state.leases)
    for entry in entries:
        match entry.event:
            case e.LeaseGranted(lease=lease):
                open_leases.add(lease)
            case e.LeaseEnded(lease=lease):
                open_leases.discard(lease)
            case _:
                pass
    if open_leases:
        yield "open", f"{len(open_leases)} machines are held at the end"


def _not_too_many(case: Case, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Against max_machines count all but those on notice or being released, as docs/spec.md says."""
    counted: set[str] = set()
    for entry in entries:
        match entry.event:
            case e.LeaseEnded(lease=lease) | e.LeaseDenied(lease=lease) | e.RevocationNoticed(lease=lease):
                counted.discard(lease)
            case _:
                pass
        for decision in entry.decisions:
            if isinstance(decision, d.RequestLease):
                counted.add(decision.lease)
            elif isinstance(decision, d.ReleaseLease):
                counted.discard(decision.lease)
        if len(counted) > case.spec.max_machines:
            yield "machines", f"{len(counted)} machines at entry {entry.seq}, max_machines={case.spec.max_machines}"
            return


def _unused(case: Case, state: RunState, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Machines that run nothing are counted on the receipt, and not rented again and again."""
    unused, in_a_row = without_a_segment(entries)
    if receipt_of(state).unused != unused:
        yield "unused", f"{unused} machines ran no trial, the receipt says {receipt_of(state).unused}"
    if in_a_row > 2 * case.spec.max_machines:
        yield "unused", f"{in_a_row} machines in a row ran no trial, max_machines={case.spec.max_machines}"


def without_a_segment(entries: Sequence[Entry]) -> tuple[int, int]:
    """Machines on which no user code ran: all of them, and the most in a row that were not preempted while trials
    waited. Counted again from the entries."""
    state, seen = RunState(), {"unused": 0, "in a row": 0, "most": 0}
    granted: set[str] = set()
    started: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, e.LeaseGranted):
            granted.add(event.lease)
        elif isinstance(event, e.SegmentStarted):
            granted.difference_update(started[event.segment])
            seen["in a row"] = 0
        replay(state, msgspec.structs.replace(entry, decisions=()))
        if isinstance(event, e.LeaseEnded) and event.lease in granted:
            seen["unused"] += 1
            seen["in a row"] += (
                event.cause in ("released", "expired") and state.phase == "running" and any(state.waiting)
            )
            seen["most"] = max(seen["most"], seen["in a row"])
        for decision in entry.decisions:
            evolve(state, decision)
            if isinstance(decision, d.StartSegment):
                started[decision.segment] = decision.leases
    return seen["unused"], seen["most"]


def _resumed_from_the_latest(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """No acknowledged checkpoint is ever forgotten."""
    saved: dict[str, int] = {}
    for entry in entries:
        match entry.event:
            case e.CheckpointSaved(job=job, step=step):
                saved[job] = max(saved.get(job, 0), step)
            case _:
                pass
        for decision in entry.decisions:
            if isinstance(decision, d.StartSegment):
                resumed = 0 if decision.resume_from is None else decision.resume_from.step
                if resumed != saved.get(decision.job, 0):
                    yield "resume", f"{decision.job} from step {resumed}, saved {saved.get(decision.job, 0)}"
