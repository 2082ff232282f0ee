"""From a resolved request to a run: simulated, or live from the start or from where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from shoestring import recipes
from shoestring.controller import run
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted, UserAsked
from shoestring.market.simulated.synthetic_prices import DEFAULT_START
from shoestring.report.study import Study
from shoestring.runs.amend import amendment, check_same
from shoestring.runs.cli_context import current_context
from shoestring.runs.drive import RunSite, drive, read_site
from shoestring.runs.folder import RunFolder, find_run, run_folder, set_aside
from shoestring.runs.progress_line import LiveLine
from shoestring.runs.sim_workload import guessed, recorded
from shoestring.specs.request import RunRequest
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.units import show_duration, show_usd
from shoestring.values import as_number, did_you_mean
from shoestring.worker.loading import stop_if_importing
from shoestring.world.sim.workload import Latencies, Workload
from shoestring.world.sim.world import SimWorld


def begin(code: Any, fields: Mapping[str, object], *, kind: str, source: str, folder: Path | None = None) -> Study:
    """Start or resume the run that a call or a file describes, with the overrides of the command line."""
    stop_if_importing()
    context = current_context()
    given = {field: value for field, value in fields.items() if value is not None}
    simulating = context.mode == "simulate"
    given |= context.overrides
    request = RunRequest.resolve(code, given, kind=kind, source=source, runs_code=not simulating, folder=folder)
    if context.handler is not None:
        study = context.handler(request)
    else:
        study = simulate_request(request, keep=True) if simulating else launch(request)
    context.studies.append(study)
    return study


# -- for real ----------------------------------------------------------------------------------------------------------
def launch(request: RunRequest) -> Study:
    """Run for real. An earlier run of this name is resumed if its spec is the same; one that is over is returned."""
    folder = run_folder(request.spec.name, request.store)
    say = current_context().say
    if request.fresh and folder.exists():
        with closing(SqliteJournal.open(folder.journal)):
            pass  # locked for a moment: a run with a live controller must not be moved
        say(f"the earlier run is now {set_aside(folder)}")
    spec = request.spec
    if not folder.exists() or not any(True for _ in folder.entries()):
        say(
            f"{spec.name}: {spec.trials} {'jobs' if spec.kind == 'bag' else 'trials'}, recipe {spec.recipe}, "
            f"{show_usd(spec.budget_usd)}, {show_duration(spec.deadline_s)}, in {folder.path}"
        )
        site = RunSite(on=request.on, market=request.market, folder=str(request.folder))
        return drive(folder, spec, site, request.provider, function=request.function)
    study = Study.in_folder(folder)
    check_same(study.spec, spec)
    more = amendment(study.state, spec, study.state.now)
    if study.state.concluded and not (more and study.state.unfinished):
        hint = " A larger --budget or a later --deadline resumes it." if study.state.unfinished else ""
        say(f"{spec.name} is over ({study.state.ending}); these are its results.{hint} --fresh runs it again.")
        return study
    say(f"resuming {spec.name}, in {folder.path}")
    site = msgspec.structs.replace(read_site(folder), folder=str(request.folder))
    if site.on.partition(":")[0] == request.on.partition(":")[0]:  # a cluster may have another address by now
        site = msgspec.structs.replace(site, on=request.on)
    return drive(
        folder,
        study.spec,
        site,
        request.provider,
        function=request.function,
        requests=lambda state, now: amendment(state, spec, now),
    )


def resume_run(folder: RunFolder) -> Study:
    """Resume from the journal and the market stored beside it, without the file that started the run."""
    study = Study.in_folder(folder)
    if study.state.concluded:
        return study
    site = read_site(folder)
    if site.on == "inline":
        raise SpecError(
            f"{study.name} runs inline: its function is only known to the program that started it",
            hint="run that program again to resume",
        )
    return drive(folder, study.spec, site, site.market.open(study.spec.deadline_s))


def conclude(folder: RunFolder) -> Study:
    """Stop a run that has no controller: its machines are released, and it is over."""
    study = Study.in_folder(folder)
    site = read_site(folder)
    provider = site.market.open(study.spec.deadline_s)
    return drive(folder, study.spec, site, provider, requests=lambda _, now: [UserAsked(at=now, wish="stop")])


# -- in virtual time ---------------------------------------------------------------------------------------------------
def simulate_request(
    request: RunRequest, workload: Workload | None = None, latencies: Latencies | None = None, *, keep: bool = False
) -> Study:
    """Simulate. The journal stays in memory, or is stored as `<name>-simulated`, replacing the one before."""
    spec, provider = request.spec, request.provider
    workload = workload or workload_of(request)
    start = provider.start or DEFAULT_START
    world = SimWorld(provider, workload, latencies, start=start)
    first = [RunStarted(at=start, spec=spec, seed=spec.seed)]
    policies, guard = recipes.build(spec), BudgetAndDeadline()
    line = LiveLine()
    if not (keep or request.store):
        memory = MemoryJournal()
        line.finish(run(world, memory, policies, guard, first=first, watcher=line))
        return Study(memory.read)
    folder = run_folder(f"{spec.name}-simulated", request.store)
    for old in folder.path.glob(f"{folder.journal.name}*"):
        old.unlink()
    with closing(SqliteJournal.open(folder.journal, survives_power_loss=False)) as journal:
        line.finish(run(world, journal, policies, guard, first=first, watcher=line))
    return Study.in_folder(folder)


_SIMULATION_OPTIONS = ("like", "seconds_per_step", "checkpoint_gb")


def workload_of(request: RunRequest) -> Workload:
    """How simulated trials behave: as in an earlier run, if there is one, else a guess; prints which."""
    options = request.simulation
    for name in options:
        if name not in _SIMULATION_OPTIONS:
            raise SpecError(f"simulate: {name} is unknown", hint=did_you_mean(name, _SIMULATION_OPTIONS))
    numbers = {name: as_number(options[name], name) for name in _SIMULATION_OPTIONS[1:] if name in options}
    for name, number in numbers.items():
        if not number > 0:
            raise SpecError(f"{name}={number:g} must be more than 0")
    say = current_context().say
    earlier = _earlier(request)
    if earlier is not None:
        say(f"trials behave as in {earlier.name}")
        return recorded(earlier, request.spec, **numbers)
    say("no earlier run is known: curves are guessed, so trust cost and time, not the metric")
    return guessed(request.spec, **numbers)


def _earlier(request: RunRequest) -> Study | None:
    if "like" in request.simulation:
        return Study.in_folder(find_run(str(request.simulation["like"]), request.store))
    folder = run_folder(request.spec.name, request.store)
    study = Study.in_folder(folder) if folder.exists() else None
    if study is None or study.state.best is None or study.spec.space != request.spec.space:
        return None
    return study
