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
    """Start or go on with what a call or a file describes, as overridden at the prompt."""
    stop_if_importing()
    prompt = current_context()
    said = {field: value for field, value in fields.items() if value is not None}
    rehearsing = prompt.mode == "simulate"
    words = {**said, **prompt.overrides}
    asked = RunRequest.resolve(code, words, kind=kind, source=source, runs_code=not rehearsing, folder=folder)
    if prompt.handler is not None:
        study = prompt.handler(asked)
    else:
        study = simulate_request(asked, keep=True) if rehearsing else launch(asked)
    prompt.studies.append(study)
    return study


# -- for real ----------------------------------------------------------------------------------------------------------
def launch(asked: RunRequest) -> Study:
    """Run for real. A run of this name that is the same one goes on; one that is over is shown."""
    folder = run_folder(asked.spec.name, asked.store)
    say = current_context().say
    if asked.fresh and folder.exists():
        with closing(SqliteJournal.open(folder.journal)):
            pass  # taken for a moment: a run that somebody is driving is not moved from under them
        say(f"the earlier run is now {set_aside(folder)}")
    spec = asked.spec
    if not folder.exists() or not any(True for _ in folder.entries()):
        say(
            f"{spec.name}: {spec.trials} {'jobs' if spec.kind == 'bag' else 'trials'}, recipe {spec.recipe}, "
            f"{show_usd(spec.budget_usd)}, {show_duration(spec.deadline_s)}, in {folder.path}"
        )
        kept = RunSite(on=asked.on, market=asked.market, folder=str(asked.folder))
        return drive(folder, spec, kept, asked.provider, function=asked.function)
    study = Study.in_folder(folder)
    check_same(study.spec, spec)
    more = amendment(study.state, spec, study.state.now)
    if study.state.concluded and not (more and study.state.unfinished):
        more_of_it = " A larger --budget or a later --deadline goes on." if study.state.unfinished else ""
        say(f"{spec.name} is over ({study.state.ending}); this is what it came to.{more_of_it} --fresh runs it again.")
        return study
    say(f"going on with {spec.name}, in {folder.path}")
    kept = msgspec.structs.replace(read_site(folder), folder=str(asked.folder))
    if kept.on.partition(":")[0] == asked.on.partition(":")[0]:  # a cluster may have another address by now
        kept = msgspec.structs.replace(kept, on=asked.on)
    return drive(
        folder,
        study.spec,
        kept,
        asked.provider,
        function=asked.function,
        wishes=lambda state, now: amendment(state, spec, now),
    )


def resume_run(folder: RunFolder) -> Study:
    """On from the journal and the market kept beside it, without the file that started the run."""
    study = Study.in_folder(folder)
    if study.state.concluded:
        return study
    kept = read_site(folder)
    if kept.on == "inline":
        raise SpecError(
            f"{study.name} runs inline: its function is only known to the program that started it",
            hint="run that program again; it goes on where it was",
        )
    return drive(folder, study.spec, kept, kept.market.open(study.spec.deadline_s))


def conclude(folder: RunFolder) -> Study:
    """End a run that nobody drives: whatever it still holds is given back, and it is over."""
    study = Study.in_folder(folder)
    kept = read_site(folder)
    provider = kept.market.open(study.spec.deadline_s)
    return drive(folder, study.spec, kept, provider, wishes=lambda _, now: [UserAsked(at=now, wish="stop")])


# -- in virtual time ---------------------------------------------------------------------------------------------------
def simulate_request(
    asked: RunRequest, workload: Workload | None = None, latencies: Latencies | None = None, *, keep: bool = False
) -> Study:
    """Simulate. The journal stays in memory, or is kept as `<name>-simulated`, in the place of the one before."""
    spec, provider = asked.spec, asked.provider
    workload = workload or workload_of(asked)
    start = provider.start or DEFAULT_START
    world = SimWorld(provider, workload, latencies, start=start)
    first = [RunStarted(at=start, spec=spec, seed=spec.seed)]
    policies, guard = recipes.build(spec), BudgetAndDeadline()
    line = LiveLine()
    if not (keep or asked.store):
        memory = MemoryJournal()
        line.finish(run(world, memory, policies, guard, first=first, watcher=line))
        return Study(memory.read)
    folder = run_folder(f"{spec.name}-simulated", asked.store)
    for old in folder.path.glob(f"{folder.journal.name}*"):
        old.unlink()
    with closing(SqliteJournal.open(folder.journal, survives_power_loss=False)) as journal:
        line.finish(run(world, journal, policies, guard, first=first, watcher=line))
    return Study.in_folder(folder)


_SIMULATION_OPTIONS = ("like", "seconds_per_step", "checkpoint_gb")


def workload_of(asked: RunRequest) -> Workload:
    """What simulated trials do: as in an earlier run, if there is one, else a guess; says which."""
    options = asked.simulation
    for name in options:
        if name not in _SIMULATION_OPTIONS:
            raise SpecError(f"simulate: {name} is unknown", hint=did_you_mean(name, _SIMULATION_OPTIONS))
    numbers = {name: as_number(options[name], name) for name in _SIMULATION_OPTIONS[1:] if name in options}
    for name, number in numbers.items():
        if not number > 0:
            raise SpecError(f"{name}={number:g} must be more than 0")
    say = current_context().say
    earlier = _earlier(asked)
    if earlier is not None:
        say(f"trials behave as in {earlier.name}")
        return recorded(earlier, asked.spec, **numbers)
    say("no earlier run is known: curves are guessed, so believe money and time, not the value")
    return guessed(asked.spec, **numbers)


def _earlier(asked: RunRequest) -> Study | None:
    if "like" in asked.simulation:
        return Study.in_folder(find_run(str(asked.simulation["like"]), asked.store))
    folder = run_folder(asked.spec.name, asked.store)
    study = Study.in_folder(folder) if folder.exists() else None
    if study is None or study.state.best is None or study.spec.space != asked.spec.space:
        return None
    return study
