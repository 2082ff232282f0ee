"""`shoestring plan`: forecast cost and time by simulation, before anything is spent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoestring.cli.options import JSON, overrides, run_options
from shoestring.cli.output import aligned, echo, next_commands, say_json

if TYPE_CHECKING:
    from shoestring.kernel.spec import RunSpec
    from shoestring.policies.checkpointing.notice_limit import NoticeLimit
    from shoestring.report.study import Study
    from shoestring.runs.forecast import Forecast
    from shoestring.runs.plan_table import PlanTable
    from shoestring.specs.request import RunRequest
    from shoestring.world.sim.workload import Workload

TITLES = ("recipe", "cost p50", "p90", "done p50", "misses deadline", "out of money", "best value")
SHARED_OPTIONS = ("placement", "checkpointing", "every_s")
"""Options that every recipe has: compared recipes keep these, and use the defaults of their own."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@run_options
@click.option("--compare", metavar="NAMES", help="Other recipes to forecast, separated by commas.")
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="Simulations per recipe.")
@click.option(
    "--like", metavar="NAME", help="Take learning curves and speed from this earlier run.  [default: this run, if any]"
)
@click.option("--seconds-per-step", type=float, help="Duration of a step on four cores.")
@click.option("--checkpoint-gb", type=float, help="Size of a checkpoint in GB.")
@JSON
def command(
    file: Path,
    as_json: bool,
    compare: str | None,
    runs: int,
    like: str | None,
    seconds_per_step: float | None,
    checkpoint_gb: float | None,
    **options: Any,
) -> None:
    """Forecast what FILE will cost and whether it meets its deadline. No code is run, nothing is stored.

    A recipe that plans (seer, rubberband, ...) shows its plan stage by stage: trials, slots, machines, dollars. Every
    recipe is then simulated --runs times, each time with another seed of the market: median cost (p50), the cost that
    nine in ten simulations stay below (p90), and how many hit the deadline or the budget with work left. Notes under
    the table say which inputs are measured and which are guessed.

    \b
      shoestring plan study.py --budget 20 --deadline 6h
      shoestring plan study.py --budget 20 --deadline 6h --compare hyperband,random
      shoestring plan study.yaml --recipe rubberband --deadline 45m --json
    """
    from shoestring.runs.cli_context import CliContext
    from shoestring.runs.study_file import run_file

    fields = overrides(options)
    simulation = {"like": like, "seconds_per_step": seconds_per_step, "checkpoint_gb": checkpoint_gb}
    if given := {name: value for name, value in simulation.items() if value is not None}:
        fields["simulate"] = given
    planner = _Planner(runs, [word.strip() for word in (compare or "").split(",") if word.strip()])
    run_file(file, CliContext(overrides=fields, mode="simulate", handler=planner, say=_to_stderr))
    if as_json:
        plain = [_plain(name, found, rests_on) for name, found, rests_on in planner.found]
        say_json(plain[0] if len(plain) == 1 else plain)
        return
    for name, found, rests_on in planner.found:
        _show(name, found, rests_on)
    next_commands(f"shoestring simulate {file}", f"shoestring run {file}")


class _Planner:
    """Forecasts each study of the file, with the recipes it is compared with."""

    def __init__(self, runs: int, others: Sequence[str]) -> None:
        self._runs, self._others = runs, others
        self.found: list[tuple[str, list[Forecast | _Impossible], dict[str, str]]] = []

    def __call__(self, request: RunRequest) -> Study:
        from dataclasses import replace

        from shoestring import recipes
        from shoestring.errors import SpecError
        from shoestring.runs.forecast import forecast
        from shoestring.runs.simulate import workload_of

        others = [_with(request.spec, recipe) for recipe in self._others]
        workload = workload_of(request)
        own, study = forecast(request, workload, self._runs, self._progress(request.spec.recipe))
        rows: list[Forecast | _Impossible] = [own]
        for spec in others:
            try:
                other = replace(request, spec=spec, policies=tuple(recipes.build(spec)))
                rows.append(forecast(other, workload, self._runs, self._progress(spec.recipe))[0])
            except SpecError as error:
                rows.append(_Impossible(spec.recipe, error))
        self.found.append((request.spec.name, rows, _rests_on(request, workload)))
        return study

    def _progress(self, recipe: str) -> Any:
        """Shows progress, on a terminal only."""
        if not sys.stderr.isatty():
            return lambda _done: None

        def progress(done: int) -> None:
            click.echo(f"\r\x1b[2K simulating {recipe}: {done} of {self._runs}", err=True, nl=False)
            if done == self._runs:
                click.echo("\r\x1b[2K", err=True, nl=False)

        return progress


class _Impossible:
    """A recipe that cannot meet the request, and why."""

    def __init__(self, recipe: str, error: Exception) -> None:
        self.recipe, self.error = recipe, error


def _with(spec: RunSpec, recipe: str) -> RunSpec:
    """The same spec with another recipe. An unknown name is refused here; an infeasible one is shown as such."""
    from msgspec.structs import replace

    from shoestring import recipes

    shared = {name: value for name, value in spec.options.items() if name in SHARED_OPTIONS}
    other = replace(spec, recipe=recipe, options=shared)
    recipes.build(replace(other, listings=()))
    return other


def _rests_on(request: RunRequest, workload: Workload) -> dict[str, str]:
    """What the forecast rests on: which inputs are known, and which are guessed."""
    from shoestring.runs.sim_workload import GUESSED_STEP_S
    from shoestring.runs.simulate import earlier_bag, job_length_of
    from shoestring.units import show_bytes, show_duration
    from shoestring.world.sim.workload import CurveTable

    known = {"prices": f"those of {request.market.prices}", "free": "this machine is free of charge"}
    known["own"] = "as given; preemptions of spot nodes are simulated"
    synthetic = f"list prices are real; spot prices and preemptions are synthetic ({request.market.kind})"
    prices = known.get(request.market.kind, synthetic)
    bag = earlier_bag(request)
    recorded = bag is not None or isinstance(workload.curve, CurveTable)
    if request.spec.until_exit:
        speed = job_length_of(request, bag)
    elif "seconds_per_step" in request.simulation:
        speed = f"a step takes {request.simulation['seconds_per_step']:g} s on four cores, as given"
    else:
        guess = f"guessed, {GUESSED_STEP_S:g} s a step on four cores: give --seconds-per-step"
        speed = "as in the earlier run" if recorded else guess
    curves = "as in the earlier run" if recorded else "guessed: do not trust the best value"
    rests_on = {"prices": prices, "speed": speed}
    if request.spec.metric is not None:
        rests_on["curves"] = curves
    if "checkpoint_gb" in request.simulation and (limit := _tightest(request, workload)) is not None:
        enough = "" if limit.is_kept else ": work since the last periodic save is lost at every preemption"
        rests_on["saves"] = f"{show_bytes(limit.size_bytes)} in {show_duration(limit.save_s)}; {limit.allows}{enough}"
    return rests_on


def _tightest(request: RunRequest, workload: Workload) -> NoticeLimit | None:
    """The requested checkpoint size, on the machine whose preemption notice leaves the least time to save it."""
    from shoestring.policies.checkpointing.notice_limit import NoticeLimit
    from shoestring.world.sim.workload import Latencies

    gb = workload.checkpoint_gb or 0.0
    limits = [
        NoticeLimit(
            listing.notice_s,
            workload.seconds_per_step({}, listing, request.spec.slots),
            int(gb * 1e9),
            Latencies().save_s(gb),
        )
        for listing in request.spec.listings
        if listing.offer.spot
    ]
    return max(limits, key=lambda limit: limit.short_by_s, default=None)


# -- showing -----------------------------------------------------------------------------------------------------------
def _show(name: str, rows: Sequence[Forecast | _Impossible], rests_on: dict[str, str]) -> None:
    from shoestring.runs.forecast import Forecast
    from shoestring.units import show_usd

    forecasts = [row for row in rows if isinstance(row, Forecast)]
    for row in forecasts:
        if row.plan is not None:
            _show_plan(f"{name}: the plan of {row.recipe}", row.plan)
            echo("")
    for line in aligned([TITLES, *(_cells(row) for row in forecasts)]):
        echo(line)
    for other in rows:
        if isinstance(other, _Impossible):
            echo(f"{other.recipe}: {other.error}")
    for row in forecasts:
        if (unspent := row.unspent) is not None:
            money = f"{show_usd(unspent.usd)} of {show_usd(unspent.budget_usd)}"
            echo(f"{row.recipe}: about {money} would be left after {unspent.trials} trials. {unspent.way}")
    echo(f"from {forecasts[0].count} simulations, each on another market. Assumptions:")
    for line in aligned([(f"  {what}", how) for what, how in rests_on.items()], to_the_left=2):
        echo(line)


def _show_plan(title: str, plan: PlanTable) -> None:
    from shoestring.runs.plan_table import TITLES as STAGE_TITLES

    echo(title)
    for line in aligned([STAGE_TITLES, *plan.cells()]):
        echo(line)
    echo(f"planned: {plan.total}")


def _cells(row: Forecast) -> tuple[str, ...]:
    from shoestring.units import show_duration, show_number, show_usd

    best = "-" if row.best is None else f"{show_number(row.best[0])} ± {show_number(row.best[1])}"
    return (
        row.recipe,
        show_usd(row.usd(0.5)),
        show_usd(row.usd(0.9)),
        show_duration(row.seconds(0.5)),
        f"{row.misses_deadline:.0%}",
        f"{row.runs_out_of_money:.0%}",
        best,
    )


def _plain(name: str, rows: Sequence[Forecast | _Impossible], rests_on: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "rests_on": rests_on,
        "recipes": [
            {"recipe": row.recipe, "impossible": str(row.error)} if isinstance(row, _Impossible) else row.to_plain()
            for row in rows
        ],
    }


def _to_stderr(text: str) -> None:
    echo(text, err=True)
