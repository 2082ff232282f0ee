"""What must hold after a storm: nothing lost, doubled, orphaned or over budget, and the same numbers as without it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator

from shoestring.kernel.decisions import DropCheckpoint
from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseEnded, LeaseGranted
from shoestring.report.study import Study
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.slowness import slowness
from tests.storm.case import SAME_IN_ANY_ORDER, Run
from tests.storm.victims import processes_of
from tests.storm.work import undisturbed

_LATE_S = 10.0
"""Real seconds by which an event may be recorded late on any computer."""
_DYING_S = 10.0


def broken_laws(run: Run, twin: Study) -> Iterator[str]:
    """One sentence for each law that does not hold."""
    if "Traceback" in run.said:
        yield f"a controller printed a traceback: {run.said[run.said.index('Traceback') :][-2000:]}"
    doubled = run.store / "doubled"
    if doubled.exists():
        yield f"doubled: {doubled.read_text().splitlines()[0]}"
    if left := _left(run):
        yield f"orphaned: processes {left} are left"
    study = run.study()
    state = study.state
    if not state.concluded or state.leases or state.segments:
        yield f"not over: {study.status}, leases {list(state.leases)}, segments {list(state.segments)}"
    if state.spent_usd > run.case.budget_usd:
        yield f"over budget: {state.spent_usd} of {run.case.budget_usd} USD"
    yield from _lost(study, run.case.steps)
    yield from _time(run)
    yield from _checkpoints(run)
    if run.case.recipe in SAME_IN_ANY_ORDER and _answer(study) != _answer(twin):
        yield f"another answer: {_answer(study)}, undisturbed {_answer(twin)}"


def _left(run: Run) -> list[int]:
    until = time.monotonic() + _DYING_S * slowness()
    while (left := processes_of(run)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _lost(study: Study, steps: int) -> Iterator[str]:
    """Every number is that of the same configuration undisturbed, no step is missing, none was reported twice."""
    reported: dict[str, dict[int, float]] = defaultdict(dict)
    seen = set()
    for entry in study.entries():
        event = entry.event
        if not isinstance(event, JobReported):
            continue
        if (event.segment, event.step) in seen:
            yield f"doubled: step {event.step} of {event.segment} is recorded twice"
        seen.add((event.segment, event.step))
        reported[event.job][event.step] = event.metrics["loss"]
        expected = undisturbed(study.state.jobs[event.job].config["x"], steps)[event.step]
        if event.metrics["loss"] != expected:
            yield f"lost: {event.job} reported {event.metrics['loss']} at step {event.step}, undisturbed {expected}"
    for number, job in study.state.jobs.items():
        if job.status not in ("finished", "pruned", "paused"):
            yield f"lost: {number} is {job.status}"
        whole = steps if job.status == "finished" else len(reported[number])
        if sorted(reported[number]) != list(range(1, whole + 1)):
            yield f"lost: {number} reported the steps {sorted(reported[number])}"


def _time(run: Run) -> Iterator[str]:
    """Times do not go back, and the run took as long as it did."""
    latest, granted = 0.0, {}
    tolerance = _tolerance_s(run) * run.case.speedup
    late = tolerance + run.clock.longest_sleep_s * run.case.speedup  # what was due in its sleep is recorded after it
    first = None
    for entry in run.study().entries():
        event = entry.event
        first = event.at if first is None else first
        if event.at < latest - late:
            yield f"time: {type(event).__name__} goes back by {(latest - event.at) / run.case.speedup:.1f} s"
            return
        latest = max(latest, event.at)
        if isinstance(event, LeaseGranted):
            granted[event.lease] = event.at
        elif isinstance(event, LeaseEnded) and event.lease in granted:
            held_s = event.at - granted[event.lease]
            if held_s < 0 or (run.case.priced and held_s > 120 and event.charged_usd + event.refunded_usd <= 0):
                yield f"bill: {event.lease} was held for {held_s:.0f} s and cost {event.charged_usd} USD"
    took_s = latest - (first or 0.0)
    really = run.took_s * run.case.speedup  # a faster clock stands still while nothing is rented
    if took_s > really + tolerance or (took_s < really - tolerance and not run.case.priced):
        yield f"time: the run took {really:.1f} s, its journal says {took_s:.1f} s"


def _tolerance_s(run: Run) -> float:
    """What a worker reports while there is no controller is recorded after what the next one does first."""
    return _LATE_S + 3 * run.slowest_start_s


def _checkpoints(run: Run) -> Iterator[str]:
    saved, dropped = {}, set()
    for entry in run.study().entries():
        if isinstance(entry.event, CheckpointSaved):
            saved[entry.event.ref.name] = entry.event.ref
        dropped |= {decision.ref.name for decision in entry.decisions if isinstance(decision, DropCheckpoint)}
    store = DirectoryStore(run.folder.path / "checkpoints")
    kept = {ref.name for ref in store.list()}
    for name in saved.keys() - dropped - kept:
        yield f"lost: the checkpoint {name} is gone"


def _answer(study: Study) -> tuple[object, ...]:
    jobs = study.state.jobs
    best = study.state.best
    return [job.config["x"] for job in jobs.values()], best, None if best is None else jobs[best].best
