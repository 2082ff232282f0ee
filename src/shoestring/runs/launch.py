"""From a resolved request to a run, from the start or from where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from shoestring import recipes
from shoestring.backends.registry import find_place
from shoestring.errors import SpecError
from shoestring.kernel.events import UserAsked
from shoestring.report.study import Study
from shoestring.runs.amend import amendment, check_same
from shoestring.runs.before_start import remarks
from shoestring.runs.cli_context import CliContext, current_context
from shoestring.runs.drive import PlaceFile, drive, read_site
from shoestring.runs.folder import RunFolder, run_folder, set_aside
from shoestring.runs.replayed import Replayed
from shoestring.specs.request import RunRequest
from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.units import show_duration, show_usd
from shoestring.worker.loading import stop_if_importing


def begin(code: Any, fields: Mapping[str, object], *, kind: str, source: str, folder: Path | None = None) -> Study:
    """Start or resume the run that a call or a file describes, with the overrides of the command line."""
    stop_if_importing()
    context = current_context()
    given = {field: value for field, value in fields.items() if value is not None}
    simulating = context.mode == "simulate"
    given |= context.overrides
    request = RunRequest.resolve(code, given, kind=kind, source=source, runs_code=not simulating, folder=folder)
    _refuse_same_name(request, context)
    if context.handler is not None:
        study = context.handler(request)
    else:
        study = _simulated(request) if simulating else launch(request)
    context.studies.append(study)
    return study


def _refuse_same_name(request: RunRequest, context: CliContext) -> None:
    """A file with several calls: each study needs a name of its own, or the second would meet the first as its past."""
    name = request.spec.name
    for study in context.studies if context.handler is None else ():
        if study.name != name:
            continue
        try:
            check_same(study.spec, request.spec)
        except SpecError:
            same = False
        else:
            same = not request.fresh
        if not same:
            raise SpecError(
                f"this file starts two studies named {name!r}",
                hint=f"give each call a name of its own: name='{name}-2'; and leave --name out",
            )


def _simulated(request: RunRequest) -> Study:
    from shoestring.runs.simulate import simulate_request  # a run for real need not load the simulator

    return simulate_request(request, keep=True)


def launch(request: RunRequest) -> Study:
    """Run for real. An earlier run of this name is resumed if its spec is the same; one that is over is returned."""
    folder = run_folder(request.spec.name, request.store)
    context = current_context()
    say = context.say
    if request.fresh and folder.exists():
        with closing(SqliteJournal.open(folder.journal)):
            pass  # locked for a moment: a run with a live controller must not be moved
        say(f"the earlier run is now {set_aside(folder)}")
    spec, replayed = request.spec, Replayed(folder)
    if replayed.state.spec is None:
        say(
            f"{spec.name}: {spec.trials} {'jobs' if spec.kind == 'bag' else 'trials'}, recipe {spec.recipe}, "
            f"{show_usd(spec.budget_usd)}, {show_duration(spec.deadline_s)}, in {folder.path}"
        )
        for remark in remarks(request, context):
            say(remark)
        site = PlaceFile(on=request.place.on, market=request.market, folder=str(request.folder))
        return drive(replayed, spec, request.policies, site, request.provider, function=request.function)
    study = replayed.study
    check_same(study.spec, spec)
    more = amendment(study.state, spec, study.state.now)
    if study.state.concluded and not (more and study.state.unfinished):
        hint = " A larger --budget or a later --deadline resumes it." if study.state.unfinished else ""
        say(f"{spec.name} is over ({study.state.ending}); these are its results.{hint} --fresh runs it again.")
        return study
    say(f"resuming {spec.name}, in {folder.path}")
    if spec.job_takes_s and spec.job_takes_s != study.spec.job_takes_s:
        say(f"{spec.name} keeps the estimate of its jobs' length that it began with: --job-takes changes nothing")
    site = msgspec.structs.replace(read_site(folder), folder=str(request.folder))
    if find_place(site.on).name == request.place.name:  # a cluster may have another address by now
        site = msgspec.structs.replace(site, on=request.place.on)
    return drive(
        replayed,
        study.spec,
        request.policies,  # those of the recorded spec: it is the same, but for budget and deadline
        site,
        request.provider,
        function=request.function,
        requests=lambda state, now: amendment(state, spec, now),
    )


def resume_run(folder: RunFolder) -> Study:
    """Resume from the journal and the market stored beside it, without the file that started the run."""
    replayed = Replayed(folder)
    study = replayed.study
    if study.state.concluded:
        return study
    site = read_site(folder)
    if find_place(site.on).place.in_caller:
        raise SpecError(
            f"{study.name} runs {site.on}: its function is only known to the program that started it",
            hint="run that program again to resume",
        )
    return drive(replayed, study.spec, recipes.build(study.spec), site, site.market.open_live(study.spec.deadline_s))


def conclude(folder: RunFolder) -> Study:
    """Stop a run that has no controller: its machines are released, and it is over."""
    replayed = Replayed(folder)
    spec, site = replayed.study.spec, read_site(folder)
    provider = site.market.open_live(spec.deadline_s)
    policies = recipes.build(spec)
    return drive(replayed, spec, policies, site, provider, requests=lambda _, now: [UserAsked(at=now, wish="stop")])
