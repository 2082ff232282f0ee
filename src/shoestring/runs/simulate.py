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
from shoestring.runs.bag_workload import as_run, finished_jobs, job_s, recorded_bag
from shoestring.runs.cli_context import current_context
from shoestring.runs.folder import find_run, run_folder
from shoestring.runs.progress_line import LiveLine
from shoestring.runs.sim_workload import GUESSED_STEP_S, guessed, recorded
from shoestring.specs.request import RunRequest
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.storage.journal.protocol import Journal
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.units import show_duration
from shoestring.values import as_number, did_you_mean
from shoestring.world.sim.workload import Latencies, Workload
from shoestring.world.sim.world import SimWorld


def simulate_request(
    request: RunRequest, workload: Workload | None = None, latencies: Latencies | None = None, *, keep: bool = False
) -> Study:
    """Simulate. The journal stays in memory, or is stored as `<name>-simulated`, replacing the one before."""
    spec, provider = request.spec, request.simulated_provider()
    workload = as_run(workload or workload_of(request), spec)
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
    say = current_context().say
    with closing(SqliteJournal.open(folder.journal, survives_power_loss=False, say=say)) as journal:
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
    if request.spec.until_exit:
        say(job_length_of(request, earlier))
        return guessed(request.spec, **numbers) if earlier is None else recorded_bag(earlier, **numbers)
    if earlier is not None:
        say(f"trials behave as in {earlier.name}")
        return recorded(earlier, request.spec, **numbers)
    say("no earlier run is known: curves are guessed, so trust cost and time, not the metric")
    return guessed(request.spec, **numbers)


def earlier_bag(request: RunRequest) -> Study | None:
    """The run from which the length of jobs is known; None if it is not a bag, or none is known."""
    return _earlier(request) if request.spec.until_exit else None


def job_length_of(request: RunRequest, earlier: Study | None) -> str:
    """How long a simulated job of a bag takes, and how that is known, as a sentence."""
    spec = request.spec
    if "seconds_per_step" in request.simulation:
        step_s = as_number(request.simulation["seconds_per_step"], "seconds_per_step")
        return f"a step takes {step_s:g} s on four cores, as given"
    if earlier is not None:
        done = len(finished_jobs(earlier))
        whose = f"the {done} that finished" if done > 1 else "the one that finished"
        given = "; --job-takes counts only until one has" if spec.job_takes_s else ""
        return f"a job takes {show_duration(job_s(earlier))} on four cores, as {whose} in {earlier.name}{given}"
    if spec.job_takes_s:
        return f"a job takes {show_duration(spec.job_takes_s)} on four cores, as given"
    guess = show_duration(GUESSED_STEP_S * spec.max_steps)
    return f"guessed: a job takes {guess} on four cores; give --job-takes"


def _earlier(request: RunRequest) -> Study | None:
    if "like" in request.simulation:
        study = Study.in_folder(find_run(str(request.simulation["like"]), request.store))
        if study.spec.kind != request.spec.kind:
            raise SpecError(
                f"{study.name} is a {study.spec.kind}, and {request.spec.name} a {request.spec.kind}",
                hint="use --like with a run of the same kind, or leave it out",
            )
        return study
    folder = run_folder(request.spec.name, request.store)
    found = Study.in_folder(folder) if folder.exists() else None
    if found is None or found.spec.kind != request.spec.kind or found.spec.space != request.spec.space:
        return None
    known = finished_jobs(found) if request.spec.until_exit else found.state.best
    return found if known else None
