"""InlineBackend: everything in this process, one segment after the other, for debugging with pdb and for tests.

`poll()` runs the next started segment to its end. There is nobody beside it who could interrupt, so notices, the end
of prepaid time and the time limit are looked at between steps. Nothing is written to disk until a checkpoint is saved
or something fails: a thousand small trials cost milliseconds. A gang would need several processes: a trial with more
slots than a worker's is one worker here, which is told of all its slots.
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
from shoestring.worker.run_function import FunctionOutcome, play_function
from shoestring.world.live.clock import RunClock

_LEAD_S = 60.0
"""Market seconds before the end of prepaid time at which a trial is asked to save and leave."""


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
        """`function`, when at hand, is called itself: closures and notebooks are fine here."""
        self._run_dir = run_dir
        self._code = code
        self._provider = provider
        self._clock = clock
        self._store = store
        self._metric = metric
        self._function = function
        self._folder = folder or Path.cwd()
        self._leases: dict[LeaseId, LeaseRecord] = {}
        self._untold: dict[LeaseId, int] = {}
        """Leases whose story is not told to its end, and how much of it is."""
        self._waiting: deque[StartSegment] = deque()
        self._started: set[SegmentId] = set()
        self._plans: dict[SegmentId, float] = {}
        self._out: list[Event] = []

    # -- machines ------------------------------------------------------------------------------------------------------
    def acquire(self, request: RequestLease) -> None:
        if request.lease not in self._leases:
            self._leases[request.lease] = LeaseRecord.asked(self._provider, request, self._clock.now())
            self._untold[request.lease] = 0

    def recall(self, request: RequestLease, granted_at: float) -> None:
        """A lease of an earlier process ended with it. When that was nobody knows: paid for until now at the most."""
        tenancy = LeaseRecord(request=request, end_by=request.end_by, answered_at=granted_at)
        now = self._clock.now()
        tenancy.end(self._provider, max(granted_at, min(now, request.end_by)), "released")
        self._leases[request.lease] = tenancy
        self._untold[request.lease] = 0

    def extend(self, extension: ExtendLease) -> None:
        tenancy = self._leases.get(extension.lease)
        if tenancy is not None and tenancy.open and tenancy.due()[0] > self._clock.now():
            tenancy.end_by = max(tenancy.end_by, extension.end_by)

    def release(self, lease: LeaseId) -> None:
        tenancy = self._leases.get(lease)
        if tenancy is not None and tenancy.open:
            now = self._clock.now()
            due, cause = tenancy.due()
            tenancy.end(self._provider, *((due, cause) if due <= now else (now, "released")))

    def inventory(self) -> Iterable[LeaseId]:
        return [lease for lease, tenancy in self._leases.items() if tenancy.open]

    # -- user code -----------------------------------------------------------------------------------------------------
    def start(self, segment: StartSegment) -> None:
        if segment.segment not in self._started:
            self._started.add(segment.segment)
            self._waiting.append(segment)

    def plan_saves(self, plan: PlanSaves) -> None:
        self._plans[plan.segment] = plan.every_s

    def signal(self, segment: SegmentId, wish: Literal["save", "halt"], grace_s: float) -> None:  # noqa: ARG002
        """Only a segment that waits for its turn can be halted, and none has anything to save then."""
        for start in self._waiting if wish == "halt" else ():
            if start.segment == segment:
                self._waiting.remove(start)
                self._end(start, self._clock.now(), FunctionOutcome("halted", _first_step(start)))
                return

    def poll(self) -> Iterable[Event]:
        self._tell_leases()
        if self._waiting and not self._out:
            self._run(self._waiting.popleft())
            self._tell_leases()
        out, self._out = self._out, []
        if len(out) > 1:
            out.sort(key=lambda event: event.at)
        return out

    def _tell_leases(self) -> None:
        now = self._clock.now()
        for lease, told in list(self._untold.items()):
            tenancy = self._leases[lease]
            due, cause = tenancy.due()
            if tenancy.open and due <= now:
                tenancy.end(self._provider, due, cause)
            story = list(tenancy.events_until(now))
            if len(story) > told:
                self._out.extend(story[told:])
                self._untold[lease] = len(story)
            if story and not tenancy.open:
                del self._untold[lease]

    def _run(self, start: StartSegment) -> None:
        now = self._clock.now()
        tenancies = [self._leases[lease] for lease in start.leases if lease in self._leases]
        if len(tenancies) < len(start.leases) or not all(tenancy.usable(now) for tenancy in tenancies):
            self._end(start, now, FunctionOutcome("lost", _first_step(start), "its machine was gone before it began"))
            return
        limit = math.inf if start.time_limit_s is None else now + start.time_limit_s
        host = InlineHost(
            start,
            self._clock,
            self._out,
            self._store,
            run_dir=self._run_dir,
            leave_at=min(_leave_at(tenancy, now) for tenancy in tenancies),
            gone_at=min(tenancy.due()[0] for tenancy in tenancies),
            limit_at=limit,
            save_every_s=self._plans.pop(start.segment, math.inf),
        )
        try:
            ending = self._play(start, host)
        except MachineGone as gone:
            ending = FunctionOutcome(gone.cause, host.step, gone.detail)
        except BaseException as error:
            # The person at the keyboard wants out (Ctrl-C, or q in pdb): that is not the trial's failure.
            self._end(
                start, self._clock.now(), FunctionOutcome("lost", host.step, f"interrupted: {type(error).__name__}")
            )
            raise
        finally:
            host.close()
        self._end(start, min(self._clock.now(), host.gone_at), ending)

    def _play(self, start: StartSegment, host: InlineHost) -> FunctionOutcome:
        try:
            checkpoint = host.restore()
            function = self._the_function() if self._code.command is None else None
        except CheckpointMissing as error:
            if start.resume_from is not None:
                at = self._clock.now()
                self._out.append(CheckpointLost(at=at, job=start.job, ref=start.resume_from, detail=str(error)))
            return FunctionOutcome("lost", 0, f"its checkpoint cannot be used: {error}")
        except Exception as error:
            return FunctionOutcome("failed", _first_step(start), describe(error))
        self._out.append(SegmentStarted(at=self._clock.now(), segment=start.segment))
        if function is None:
            return self._play_command(start, host, checkpoint)
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
        return play_function(function, trial, self._metric, log=host.log, let_out=_wants_out)

    def _play_command(self, start: StartSegment, host: InlineHost, checkpoint: Path | None) -> FunctionOutcome:
        from shoestring.worker.arguments import Desk
        from shoestring.worker.command import CommandRun

        desk = Desk(host.scratch)
        desk.folder.mkdir(parents=True, exist_ok=True)
        with host.log_path.open("ab") as log:
            run = CommandRun(
                host=host,
                desk=desk,
                config=start.config,
                until_step=start.until_step,
                first_step=_first_step(start),
                metric=self._metric,
                fraction=start.fraction,
                fractions=start.fractions,
                log=log,
                own_group=True,
            )
            environment = desk.environment(
                start.config,
                checkpoint=checkpoint,
                until_step=start.until_step,
                slots=start.slots,
                fraction=start.fraction,
                fractions=start.fractions,
            )
            return run.run(self._code.command or (), self._folder, environment)

    def _the_function(self) -> TrainFunction:
        if self._function is None:
            if self._code.function is None:
                raise ShoestringError("there is nothing to run: the spec names neither a function nor a command")
            self._function = load_function(self._code.function, self._folder)
        return self._function

    def _end(self, start: StartSegment, at: float, ending: FunctionOutcome) -> None:
        self._out.append(
            SegmentEnded(at=at, segment=start.segment, step=ending.step, cause=ending.cause, detail=ending.detail)
        )

    def close(self) -> None:
        """Machines of this backend end with the process, so there is nothing to let go of."""


def _leave_at(tenancy: LeaseRecord, now: float) -> float:
    """When to save and go: at the notice, or shortly before prepaid time ends, but not before half of it is used."""
    return min(tenancy.notice_at, max(tenancy.end_by - _LEAD_S, (now + tenancy.end_by) / 2))


def _first_step(start: StartSegment) -> int:
    return 0 if start.resume_from is None else start.resume_from.step


def _wants_out(error: Exception) -> bool:
    """Quitting the debugger is an exception like others, raised in the middle of user code."""
    bdb = sys.modules.get("bdb")
    return bdb is not None and isinstance(error, bdb.BdbQuit)
