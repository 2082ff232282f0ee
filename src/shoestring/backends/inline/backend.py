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
from shoestring.backends.leases import Biller, Leases
from shoestring.backends.machines import MachineSource
from shoestring.backends.site import Site
from shoestring.errors import CheckpointMissing, ShoestringError
from shoestring.kernel.decisions import ExtendLease, PlanSaves, RequestLease, StartSegment
from shoestring.kernel.events import CheckpointLost, Event, SegmentEnded, SegmentStarted
from shoestring.kernel.types import LeaseId, SegmentId
from shoestring.trial import Trial
from shoestring.worker.loading import TrainFunction, describe, load_function
from shoestring.worker.run_function import FunctionOutcome, run_function


class InlineBackend:
    def __init__(self, site: Site, machines: MachineSource, billing: Biller) -> None:
        self._site = site
        self._clock = site.clock
        self._function = site.function
        self._leases = Leases(machines, billing, site.clock)
        self._waiting: deque[StartSegment] = deque()
        self._started: set[SegmentId] = set()
        self._plans: dict[SegmentId, float] = {}
        self._out: list[Event] = []

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        self._leases.acquire(request)

    def recall(self, request: RequestLease, granted_at: float) -> None:
        """A lease of an earlier process ended with it. When that was is unknown: charged until now at the most."""
        self._leases.add_ended(request, granted_at, max(granted_at, min(self._clock.now(), request.end_by)))

    def extend(self, extension: ExtendLease) -> None:
        self._leases.extend(extension)

    def release(self, lease: LeaseId) -> None:
        ended = self._leases.release_now(lease)
        if ended is not None:
            self._leases.end(lease, *ended)
            self._leases.let_go(lease)

    def inventory(self) -> Iterable[LeaseId]:
        return self._leases.open_leases()

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
        for lease, end in self._leases.update(now):
            self._leases.lose(lease, now, end.cause)
            self._leases.let_go(lease)
        for lease, at, cause in self._leases.overdue(now):
            self._leases.end(lease, at, cause)
            self._leases.let_go(lease)
        self._out.extend(self._leases.new_events(now))

    def _run(self, start: StartSegment) -> None:
        now = self._clock.now()
        if not self._leases.usable(start.leases, now):
            self._end(start, now, FunctionOutcome("lost", _first_step(start), "its machine ended before it started"))
            return
        times = self._leases.times(start.leases)
        host = InlineHost(
            start,
            self._clock,
            self._out,
            self._site.store,
            run_dir=self._site.run_dir,
            last_step=self._last_step(start),
            leave_at=min(times.notice_at, times.end_by - self._site.wind_down_s),
            gone_at=min(times.end_by, times.gone_at),
            limit_at=math.inf if start.time_limit_s is None else now + start.time_limit_s,
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
            function = self._train_function() if self._site.code.command is None else None
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
            until_step=self._last_step(start),
            host=host,
            step=_first_step(start),
            checkpoint=checkpoint,
            fraction=start.fraction,
            fractions=start.fractions,
            seed=start.seed,
            slots=start.slots,
        )
        return run_function(
            function,
            trial,
            self._site.metric,
            until_exit=self._site.until_exit,
            log=host.log,
            passes_through=_is_debugger_quit,
        )

    def _run_command(self, start: StartSegment, host: InlineHost, checkpoint: Path | None) -> FunctionOutcome:
        from shoestring.worker.arguments import ProgramFiles
        from shoestring.worker.command import CommandRun
        from shoestring.worker.ranks import launch_variables
        from shoestring.worker.task import Host

        once = self._site.code.launch == "once"
        files = ProgramFiles(host.scratch)
        files.folder.mkdir(parents=True, exist_ok=True)
        with host.log_path.open("ab") as log:
            run = CommandRun(
                host=host,
                files=files,
                config=start.config,
                until_step=None if self._site.until_exit else start.until_step,
                first_step=_first_step(start),
                metric=self._site.metric,
                fraction=start.fraction,
                fractions=start.fractions,
                log=log,
                own_group=True,
                launched=tuple if once else None,
            )
            environment = files.environment(
                start.config,
                checkpoint=checkpoint,
                until_step=self._last_step(start),
                slots=start.slots,
                fraction=start.fraction,
                fractions=start.fractions,
            )
            environment |= launch_variables([Host(slots=start.slots)] if once else [], files.folder)
            return run.run(self._site.code.command or (), self._site.folder, environment)

    def _last_step(self, start: StartSegment) -> int | None:
        return None if self._site.open_ended else start.until_step

    def _train_function(self) -> TrainFunction:
        if self._function is None:
            if self._site.code.function is None:
                raise ShoestringError("there is nothing to run: the spec has neither a function nor a command")
            self._function = load_function(self._site.code.function, self._site.folder)
        return self._function

    def _end(self, start: StartSegment, at: float, outcome: FunctionOutcome) -> None:
        self._out.append(
            SegmentEnded(at=at, segment=start.segment, step=outcome.step, cause=outcome.cause, detail=outcome.detail)
        )

    def close(self) -> None:
        """Machines of this backend end with the process, so there is nothing to release."""


def _first_step(start: StartSegment) -> int:
    return 0 if start.resume_from is None else start.resume_from.step


def _is_debugger_quit(error: Exception) -> bool:
    """Quitting the debugger raises an ordinary exception in the middle of user code."""
    bdb = sys.modules.get("bdb")
    return bdb is not None and isinstance(error, bdb.BdbQuit)
