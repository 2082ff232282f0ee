"""A resolved request in virtual time: simulated, in memory or stored."""

from __future__ import annotations

from contextlib import closing

from shoestring.controller import both, run
from shoestring.errors import SpecError
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.events import RunStarted
from shoestring.market.simulated.synthetic_prices import DEFAULT_START
from shoestring.report.study import Study
from shoestring.report.trials import Tally
from shoestring.runs.cli_context import current_context
from shoestring.runs.folder import find_run, run_folder
from shoestring.runs.progress_line import LiveLine
from shoestring.runs.sim_workload import guessed, recorded
from shoestring.specs.request import RunRequest
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.storage.journal.protocol import Journal
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.values import as_number, did_you_mean
from shoestring.world.sim.workload import Latencies, Workload
from shoestring.world.sim.world import SimWorld


def simulate_request(
    request: RunRequest, workload: Workload | None = None, latencies: Latencies | None = None, *, keep: bool = False
) -> Study:
    """Simulate. The journal stays in memory, or is stored as `<name>-simulated`, replacing the one before."""
    spec, provider = request.spec, request.simulated_provider()
    workload = workload or workload_of(request)
    start = provider.start or DEFAULT_START
    world = SimWorld(provider, workload, latencies, start=start)
    first = [RunStarted(at=start, spec=spec, seed=spec.seed)]
    line, tally = LiveLine(), Tally()

    def simulated(journal: Journal) -> None:
        guard = BudgetAndDeadline()
        line.finish(run(world, journal, request.policies, guard, first=first, watcher=both(tally.watch, line)))

    if not (keep or request.store):
        memory = MemoryJournal()
        simulated(memory)
        return Study(memory.read, tally=tally)
    folder = run_folder(f"{spec.name}-simulated", request.store)
    for old in folder.path.glob(f"{folder.journal.name}*"):
        old.unlink()
    with closing(SqliteJournal.open(folder.journal, survives_power_loss=False)) as journal:
        simulated(journal)
    return Study(folder.entries, folder, tally)


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
