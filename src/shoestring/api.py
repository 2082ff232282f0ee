"""The four calls: tune(), run_bag(), simulate(), resume().

A call passes the user's fields on: `specs.build` makes the spec, `specs.market` the market, `runs.launch` the run. What
it needs is imported in the call: a worker imports the user's file for its function, and stops at the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.worker.loading import stop_if_importing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from shoestring.report.study import Bag, Study
    from shoestring.space.constraints import Constraint
    from shoestring.specs.market import Machines, Market
    from shoestring.trial import Trial
    from shoestring.world.sim.workload import Latencies, Workload

    Train = Callable[[Trial], object]
    Code = Train | str | Sequence[str]
    """A function, or a command line with {parameters} in it."""
    MarketName = str | Path | Market | Mapping[str, object] | None


def tune(
    train: Code,
    *,
    space: Mapping[str, object],
    minimize: str | None = None,
    maximize: str | None = None,
    trials: int | None = None,
    max_steps: int | None = None,
    fractions: Iterable[float] | None = None,
    constraints: str | Constraint | Iterable[str | Constraint] | None = None,
    budget: str | float | None = None,
    deadline: str | float | None = None,
    recipe: str | None = None,
    seed: int | None = None,
    name: str | None = None,
    on: str | None = None,
    market: MarketName = None,
    machines: Machines | Sequence[str] | Mapping[str, object] | None = None,
    speedup: float | None = None,
    store: str | Path | None = None,
    fresh: bool | None = None,
    **more: object,
) -> Study:
    """Search for the best configuration within a budget and a deadline; resumes a run of this name.

    The best trial satisfies all `constraints` ("cost <= $0.50"); `fractions` are data fractions to train on.
    Without a market it runs on this machine, free of charge. `on="inline"` runs all code in this process, to debug it.
    `more` is any other field of a spec file: given, slots, max_machines, max_failures, time_limit, options, ...
    """
    stop_if_importing()
    from shoestring.runs.launch import begin

    fields: dict[str, object] = {
        "space": space,
        "minimize": minimize,
        "maximize": maximize,
        "trials": trials,
        "max_steps": max_steps,
        "fractions": fractions,
        "constraints": constraints,
    }
    fields |= {"budget": budget, "deadline": deadline, "recipe": recipe, "seed": seed, "name": name}
    environment: dict[str, object] = {
        "on": on,
        "market": market,
        "machines": machines,
        "speedup": speedup,
        "store": store,
        "fresh": fresh,
    }
    return begin(train, {**fields, **environment, **more}, kind="study", source="tune()")


def run_bag(
    job: Code,
    *,
    over: Mapping[str, Iterable[object]] | None = None,
    given: Sequence[Mapping[str, object]] | None = None,
    table: str | Path | None = None,
    budget: str | float | None = None,
    deadline: str | float | None = None,
    name: str | None = None,
    on: str | None = None,
    market: MarketName = None,
    machines: Machines | Sequence[str] | Mapping[str, object] | None = None,
    speedup: float | None = None,
    store: str | Path | None = None,
    fresh: bool | None = None,
    **more: object,
) -> Bag:
    """Run a job for every combination in `over`, every configuration in `given`, or every row of the file `table`.

    `bag.results` has a row for each job. `more` is any other field of a spec file: recipe, slots, job_takes, ...
    """
    stop_if_importing()
    from shoestring.runs.launch import begin

    fields: dict[str, object] = {"over": over, "given": given, "table": table}
    fields |= {"budget": budget, "deadline": deadline, "name": name}
    environment: dict[str, object] = {
        "on": on,
        "market": market,
        "machines": machines,
        "speedup": speedup,
        "store": store,
        "fresh": fresh,
    }
    return begin(job, {**fields, **environment, **more}, kind="bag", source="run_bag()")


def simulate(
    train: Code | None = None,
    *,
    workload: Workload | None = None,
    latencies: Latencies | None = None,
    store: str | Path | None = None,
    **fields: object,
) -> Study:
    """Simulate a study in virtual time: takes the arguments of `tune`, needs no code, is free of charge.

    The workload models the trials (see `Workload`); without one, learning curves are guessed. The journal stays in
    memory unless a `store` is given; it then stores the run as `<name>-simulated`.
    """
    stop_if_importing()
    from shoestring.runs.simulate import simulate_request
    from shoestring.specs.build import kind_of
    from shoestring.specs.request import RunRequest

    kind = str(fields.pop("kind", None) or kind_of(fields))
    request = RunRequest.resolve(train, {**fields, "store": store}, kind=kind, source="simulate()", runs_code=False)
    return simulate_request(request, workload, latencies)


def resume(run: str | Path, *, store: str | Path | None = None) -> Study:
    """Resume a run by its name or folder, from its journal alone; one that is over is just opened."""
    stop_if_importing()
    from shoestring.runs.folder import find_run
    from shoestring.runs.launch import resume_run

    return resume_run(find_run(run, store))
