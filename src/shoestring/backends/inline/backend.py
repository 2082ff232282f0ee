"""InlineBackend: everything in this process, one segment after the other, for debugging with pdb and for tests.

`poll()` runs the next started segment to its end. No other process could interrupt it, so notices, the end of prepaid
time and the time limit are checked between steps. Nothing is written to disk until a checkpoint is saved or something
fails: a thousand small trials cost milliseconds. A gang would need several processes: a trial with more slots than a
worker has is one worker here, with all of its slots.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from shoestring.backends.inline.host import InlineHost, MachineGone
from shoestring.backends.simulated_lease import LeaseRecord, Provider
from shoestring.errors import CheckpointMissing, ShoestringError
from shoestring.kernel.decisions import ExtendLease, PlanSaves, RequestLease, StartSegment
from shoestring.kernel.events import CheckpointLost, Event, SegmentEnded, SegmentStarted
from shoestring.kernel.spec import Code
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.storage.checkpoints.directory import CheckpointStore
from shoestring.trial import Trial
from shoestring.worker.loading import TrainFunction, describe, load_function
from shoestring.worker.run_function import FunctionOutcome, run_function
from shoestring.world.live.clock import RunClock

_LEAD_S = 60.0
"""Market seconds before the end of prepaid time at which a trial has to save and stop."""


class InlineBackend:
    def __init__(
        self,
        run_dir: Path,
        *,
        code: Code,
        provider: Provider,
        clock: RunClock,
        store: CheckpointStore,
        metric: str | None,
        function: TrainFunction | None = None,
        folder: Path | None = None,
    ) -> None:
        """`function`, when given, is called directly: closures and notebooks are fine here."""
        self._run_dir = run_dir
        self._code = code
        self._provider = provider
        self._clock = clock
        self._store = store
        self._metric = metric
        self._function = function
        self._folder = folder or Path.cwd()
        self._leases: dict[LeaseId, LeaseRecord] = {}
        self._unreported: dict[LeaseId, int] = {}
        """Leases with events still to report, and how many of their events were reported."""
        self._waiting: deque[StartSegment] = deque()
        self._started: set[SegmentId] = set()
        self._plans: dict[SegmentId, float] = {}
        self._out: list[Event] = []

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        if request.lease not in self._leases:
            self._leases[request.lease] = LeaseRecord.from_request(self._provider, request, self._clock.now())
            self._unreported[request.lease] = 0

    def recall(self, request: RequestLease, granted_at: float) -> None:
        """A lease of an earlier process ended with it. When that was is unknown: charged until now at the most."""
        record = LeaseRecord(request=request, end_by=request.end_by, answered_at=granted_at)
        now = self._clock.now()
        record.end(self._provider, max(granted_at, min(now, request.end_by)), "released")
        self._leases[request.lease] = record
        self._unreported[request.lease] = 0

    def extend(self, extension: ExtendLease) -> None:
        record = self._leases.get(extension.lease)
        if record is not None and record.open and record.due()[0] > self._clock.now():
            record.end_by = max(record.end_by, extension.end_by)

    def release(self, lease: LeaseId) -> None:
        record = self._leases.get(lease)
        if record is not None and record.open:
            now = self._clock.now()
            due, cause = record.due()
            record.end(self._provider, *((due, cause) if due <= now else (now, "released")))

    def inventory(self) -> Iterable[LeaseId]:
        return [lease for lease, record in self._leases.items() if record.open]

    # -- user code -----------------------------------------------------------------------------------------------------
    def start(self, segment: StartSegment) -> None:
        if segment.segment not in self._started:
            self._started.add(segment.segment)
            self._waiting.append(segment)

    def plan_saves(self, plan: PlanSaves) -> None:
        self._plans[plan.segment] = plan.every_s

    def signal(self, segment: SegmentId, action: Literal["save", "halt"], grace_s: float) -> None:  # noqa: ARG002
        """Only a segment that has not started can be halted, and it has nothing to save yet."""
        for start in self._waiting if action == "halt" else ():
            if start.segment == segment:
                self._waiting.remove(start)
                self._end(start, self._clock.now(), FunctionOutcome("halted", _first_step(start)))
                return

    def poll(self) -> Iterable[Event]:
        self._report_leases()
        if self._waiting and not self._out:
            self._run(self._waiting.popleft())
            self._report_leases()
        out, self._out = self._out, []
        if len(out) > 1:
            out.sort(key=lambda event: event.at)
        return out

    def _report_leases(self) -> None:
        now = self._clock.now()
        for lease, reported in list(self._unreported.items()):
            record = self._leases[lease]
            due, cause = record.due()
            if record.open and due <= now:
                record.end(self._provider, due, cause)
            events = list(record.events_until(now))
            if len(events) > reported:
                self._out.extend(events[reported:])
                self._unreported[lease] = len(events)
            if events and not record.open:
                del self._unreported[lease]

    def _run(self, start: StartSegment) -> None:
        now = self._clock.now()
        records = [self._leases[lease] for lease in start.leases if lease in self._leases]
        if len(records) < len(start.leases) or not all(record.usable(now) for record in records):
            self._end(start, now, FunctionOutcome("lost", _first_step(start), "its machine ended before it started"))
            return
        limit = math.inf if start.time_limit_s is None else now + start.time_limit_s
        host = InlineHost(
            start,
            self._clock,
            self._out,
            self._store,
            run_dir=self._run_dir,
            leave_at=min(_leave_at(record, now) for record in records),
            gone_at=min(record.due()[0] for record in records),
            limit_at=limit,
            save_every_s=self._plans.pop(start.segment, math.inf),
        )
        try:
            outcome = self._run_user_code(start, host)
        except MachineGone as gone:
            outcome = FunctionOutcome(gone.cause, host.step, gone.detail)
        except BaseException as error:
            # The user interrupts (Ctrl-C, or q in pdb): that is not the trial's failure.
            self._end(
                start, self._clock.now(), FunctionOutcome("lost", host.step, f"interrupted: {type(error).__name__}")
            )
            raise
        finally:
            host.close()
        self._end(start, min(self._clock.now(), host.gone_at), outcome)

    def _run_user_code(self, start: StartSegment, host: InlineHost) -> FunctionOutcome:
        try:
            checkpoint = host.restore()
            function = self._train_function() if self._code.command is None else None
        except CheckpointMissing as error:
            if start.resume_from is not None:
                at = self._clock.now()
                self._out.append(CheckpointLost(at=at, job=start.job, ref=start.resume_from, detail=str(error)))
            return FunctionOutcome("lost", 0, f"its checkpoint cannot be used: {error}")
        except Exception as error:
            return FunctionOutcome("failed", _first_step(start), describe(error))
        self._out.append(SegmentStarted(at=self._clock.now(), segment=start.segment))
        if function is None:
            return self._run_command(start, host, checkpoint)
        trial = Trial(
            job=start.job,
            config=start.config,
            until_step=start.until_step,
            host=host,
            step=_first_step(start),
            checkpoint=checkpoint,
            fraction=start.fraction,
            fractions=start.fractions,
            seed=start.seed,
            slots=start.slots,
        )
        return run_function(function, trial, self._metric, log=host.log, passes_through=_is_debugger_quit)

    def _run_command(self, start: StartSegment, host: InlineHost, checkpoint: Path | None) -> FunctionOutcome:
        from shoestring.worker.arguments import ProgramFiles
        from shoestring.worker.command import CommandRun

        files = ProgramFiles(host.scratch)
        files.folder.mkdir(parents=True, exist_ok=True)
        with host.log_path.open("ab") as log:
            run = CommandRun(
                host=host,
                files=files,
                config=start.config,
                until_step=start.until_step,
                first_step=_first_step(start),
                metric=self._metric,
                fraction=start.fraction,
                fractions=start.fractions,
                log=log,
                own_group=True,
            )
            environment = files.environment(
                start.config,
                checkpoint=checkpoint,
                until_step=start.until_step,
                slots=start.slots,
                fraction=start.fraction,
                fractions=start.fractions,
            )
            return run.run(self._code.command or (), self._folder, environment)

    def _train_function(self) -> TrainFunction:
        if self._function is None:
            if self._code.function is None:
                raise ShoestringError("there is nothing to run: the spec has neither a function nor a command")
            self._function = load_function(self._code.function, self._folder)
        return self._function

    def _end(self, start: StartSegment, at: float, outcome: FunctionOutcome) -> None:
        self._out.append(
            SegmentEnded(at=at, segment=start.segment, step=outcome.step, cause=outcome.cause, detail=outcome.detail)
        )

    def close(self) -> None:
        """Machines of this backend end with the process, so there is nothing to release."""


def _leave_at(record: LeaseRecord, now: float) -> float:
    """When to save and stop: at the notice, or shortly before prepaid time ends, but not before half of it is used."""
    return min(record.notice_at, max(record.end_by - _LEAD_S, (now + record.end_by) / 2))


def _first_step(start: StartSegment) -> int:
    return 0 if start.resume_from is None else start.resume_from.step


def _is_debugger_quit(error: Exception) -> bool:
    """Quitting the debugger raises an ordinary exception in the middle of user code."""
    bdb = sys.modules.get("bdb")
    return bdb is not None and isinstance(error, bdb.BdbQuit)
