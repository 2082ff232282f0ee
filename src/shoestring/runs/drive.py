"""A run for real: journal, world and signals around the controller's loop.

Beside the journal a run keeps `place.json`: where its code runs, on which market, and from when the market's clock
continues. A clock that runs faster than the wall's stands still while nothing is rented: a pause of minutes must not
cost days of the deadline.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from shoestring.backends.registry import RunPlace, find_place
from shoestring.backends.site import Site
from shoestring.controller import both, run
from shoestring.errors import DamagedFile, JournalDamaged, PermanentError, SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import Event, RunStarted, UserAsked
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Fact, SegmentId
from shoestring.market.priced import PricedMarket
from shoestring.report.study import Study
from shoestring.runs.cli_context import current_context
from shoestring.runs.folder import RunFolder
from shoestring.runs.pause_summary import HeldAtPause, pause_summary
from shoestring.runs.progress_line import LiveLine
from shoestring.runs.replayed import Replayed
from shoestring.runs.signals import pausing_on_signals
from shoestring.runs.sweep import sweep_leftovers
from shoestring.specs.market import Market
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.worker.loading import TrainFunction
from shoestring.worker.steady_clock import SteadyClock
from shoestring.worker.task import read_json, write_json
from shoestring.world.live.background import InProcessTasks
from shoestring.world.live.clock import RunClock
from shoestring.world.live.world import LiveWorld

UserRequests = Callable[[RunState, float], Sequence[Event]]
"""The user's requests to a run that resumes, given its state and the time on its clock."""


class PlaceFile(Fact, frozen=True, kw_only=True):
    """What a controller needs beside the journal: `place.json`."""

    on: str
    market: Market
    folder: str
    clock: tuple[float, float] = (0.0, 0.0)
    """(market time, wall time) from which the clock continues."""


def read_site(folder: RunFolder) -> PlaceFile:
    try:
        return read_json(folder.place, PlaceFile)
    except (OSError, DamagedFile) as error:
        raise JournalDamaged(
            f"{folder.place} cannot be read, so the market of this run is not known: {error}",
            hint="restore it from a copy, or start afresh (--fresh)",
        ) from error


def drive(
    replayed: Replayed,
    spec: RunSpec,
    policies: Sequence[Policy],
    site: PlaceFile,
    provider: PricedMarket,
    *,
    function: TrainFunction | None = None,
    requests: UserRequests = lambda _state, _now: (),
) -> Study:
    """Run to the end, or to a pause. KeyboardInterrupt once a run interrupted at the keyboard is safely paused."""
    folder, place = replayed.folder, find_place(site.on)
    survives_power_loss, say = place.survives_power_loss(), current_context().say
    with closing(SqliteJournal.open(folder.journal, survives_power_loss=survives_power_loss, say=say)) as journal:
        replayed.read_on(journal)
        state = replayed.state
        site, clock = _clock(folder, site, provider, state)
        write_json(folder.place, site)
        first: list[Event] = []
        if state.spec is None:
            first.append(RunStarted(at=clock.started_at, spec=spec, seed=spec.seed, wall_at=clock.wall_at))
        else:
            now = max(clock.now(), state.now)
            first += requests(state, now)
            if state.phase in ("pausing", "parking"):
                first.append(UserAsked(at=now, wish="resume"))
        _sweep(folder, state.segments, over=False)
        world = _world(folder, spec, place, Path(site.folder), provider, clock, function)
        with closing(world):
            ended = _control(world, journal, policies, replayed, first, in_caller=place.place.in_caller)
        if ended.concluded:
            _sweep(folder, (), over=True)
    return replayed.study


def _clock(folder: RunFolder, site: PlaceFile, provider: PricedMarket, state: RunState) -> tuple[PlaceFile, RunClock]:
    """The run's clock, and where it continues: never before the latest time in the journal, however the computer's
    clock was set meanwhile."""
    last = RunClock(*site.clock, speedup=site.market.speedup)
    steady = SteadyClock.of_run(folder.path, -math.inf if state.spec is None else last.wall(state.now))
    now = steady.time()
    if state.spec is None:
        site = msgspec.structs.replace(site, clock=(provider.start or now, now))
    elif site.market.speedup != 1 and not state.leases:
        site = msgspec.structs.replace(site, clock=(max(state.now, state.started_at), now))
    steady.share(folder.path)
    return site, RunClock(*site.clock, speedup=site.market.speedup, steady=steady)


def _sweep(folder: RunFolder, open_segments: Collection[SegmentId], *, over: bool) -> None:
    failed = sweep_leftovers(folder.path, DirectoryStore(folder.path / "checkpoints"), open_segments, over=over)
    if failed:
        sys.stderr.write(f"warning: {failed}\n")


def _control(
    world: LiveWorld,
    journal: SqliteJournal,
    policies: Sequence[Policy],
    replayed: Replayed,
    first: Sequence[Event],
    *,
    in_caller: bool,
) -> RunState:
    line = LiveLine()
    held = HeldAtPause()

    def pause() -> None:
        nonlocal held
        if line.state is not None:
            held = HeldAtPause.of(line.state)
        world.request("pause")

    # Where user code runs in this very thread, Ctrl-C belongs to it, and to the debugger.
    with pausing_on_signals(None if in_caller else pause) as interruption:
        state = run(
            world,
            journal,
            policies,
            BudgetAndDeadline(),
            first=first,
            watcher=both(replayed.tally.watch, line),
            recalled=(replayed.state, replayed.past),
        )
    line.finish(state)
    if interruption.requested and not state.concluded:
        sys.stderr.write(f"{pause_summary(held, state)}\n")
        raise KeyboardInterrupt
    if world.trouble and not state.concluded:
        raise PermanentError(
            f"the run is paused: {world.trouble[-1]}", hint="once that is fixed, run the same command to resume"
        )
    return state


def _world(
    folder: RunFolder,
    spec: RunSpec,
    place: RunPlace,
    code_folder: Path,
    provider: PricedMarket,
    clock: RunClock,
    function: TrainFunction | None,
) -> LiveWorld:
    if not code_folder.is_dir():
        raise SpecError(f"the folder of this run's code is gone: {code_folder}", hint="start it again from its file")
    run_dir = folder.path.resolve()
    site = Site(
        run_dir=run_dir,
        code=spec.code,
        folder=code_folder.resolve(),
        store=DirectoryStore(run_dir / "checkpoints"),
        clock=clock,
        metric=spec.metric,
        until_exit=spec.until_exit,
        open_ended=bool(spec.open_ended),
        slots_per_worker=spec.slots,
        wind_down_s=spec.wind_down_s,
        function=function,
    )
    background = InProcessTasks() if place.place.in_caller else None
    backend = place.open(site, provider)
    return LiveWorld(backend, clock, provider.feed, site.store, run_dir=run_dir, background=background)
