"""`shoestring lifetimes`: fit, show and evaluate models of machine lifetimes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoestring.cli.options import JSON, STORE
from shoestring.cli.output import aligned, echo, next_commands, say_json

if TYPE_CHECKING:
    from shoestring.models.lifetimes.fit import Method
    from shoestring.models.lifetimes.saved import SavedLifetimes

FILE = click.argument("file", type=click.Path(path_type=Path))
LIMIT = click.option("--limit", metavar="TIME", help="The age at which the provider preempts every machine, e.g. 24h.")
MACHINES = click.option("--machines", metavar="NAMES", help="Only these instance types, separated by commas.")
ZONES = click.option("--zones", metavar="NAMES", help="Only these zones, separated by commas.")
RUNS = click.option("--runs", multiple=True, metavar="RUN", help="Use the machines of this run of yours; repeatable.")


@click.group()
def command() -> None:
    """How long does a machine run until it is preempted? Learned from public lifetimes and from your own machines.

    FILE is CSV with the columns lifetime_s and taken (true: preempted; false: released, so the lifetime is
    right-censored) and, where known, machine, zone, launched_at (UTC) and limit_s.

    \b
      shoestring lifetimes eval lifetimes.csv                     compare models by cross-validation
      shoestring lifetimes fit lifetimes.csv -o model.json        fit one, with hazards per instance type and zone
      shoestring lifetimes fit lifetimes.csv --runs mybag -o model.json       and with my own machines
      shoestring lifetimes show model.json --work 6h --plot model.svg
    """


@command.command("fit", short_help="Fit a model and save it.")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Where to save it."
)
@click.option("--model", "name", metavar="NAME", help="[default: weibull_atom; without a limit weibull]")
@click.option(
    "--by",
    type=click.Choice(["likelihood", "least-squares"]),
    help="Maximum likelihood over all machines, or least squares over the preempted ones, as in the paper.",
)
@RUNS
@LIMIT
@MACHINES
@ZONES
@STORE
def fit(
    file: Path | None,
    output: Path,
    name: str | None,
    by: str | None,
    runs: tuple[str, ...],
    limit: str | None,
    machines: str | None,
    zones: str | None,
    store: str | None,
) -> None:
    """Fit a model to the lifetimes in FILE, to your own runs, or to FILE with your own runs beside it.

    Machines that were released are right-censored. Instance types, zones and launch times become multipliers of the
    pooled hazard, near 1 where there is little data; with both FILE and --runs, your own machines get one too.

    \b
      shoestring lifetimes fit lifetimes.csv -o model.json
      shoestring lifetimes fit --runs monday --runs tuesday -o model.json
      shoestring lifetimes fit lifetimes.csv --model bathtub_printed -o paper.json
    """
    from shoestring.analysis.lifetimes import of_runs, save
    from shoestring.errors import SpecError
    from shoestring.models.lifetimes.records import read_lifetimes
    from shoestring.models.lifetimes.saved import fit_saved, with_own

    only: dict[str, Any] = {"limit_s": _limit_s(limit), "machines": _split(machines), "zones": _split(zones)}
    method: Method | None = None if by is None else "likelihood" if by == "likelihood" else "least_squares"
    own = of_runs(runs, store, **only) if runs else None
    if file is not None:
        saved = fit_saved(read_lifetimes(file, **only), name, method)
        saved = saved if own is None else with_own(saved, own)
    elif own is not None:
        saved = fit_saved(own, name, method)
    else:
        raise SpecError("there are no lifetimes to fit", hint="give a file of lifetimes, or your own runs with --runs")
    save(saved, output)
    echo(_about(saved))
    if saved.own is not None and own is not None:
        echo(
            f"yours: {len(own)} machines, {saved.own.deaths:.0f} preempted before the limit, "
            f"{saved.own.expected:.1f} expected: hazard x{saved.own_multiplier:.2f}"
        )
    echo(f"saved to {output}")
    next_commands(f"shoestring lifetimes show {output}", *([f"shoestring lifetimes eval {file}"] if file else []))


@command.command("show", short_help="Survival, hazard and multipliers of a saved model.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--work", default="1h", show_default=True, metavar="TIME", help="Length of a job that cannot be split.")
@click.option("--machine", default="", metavar="NAME", help="For this instance type.  [default: all pooled]")
@click.option("--zone", default="", metavar="NAME", help="For this zone.")
@click.option("--data", type=click.Path(path_type=Path), help="Plot these lifetimes beside it.")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a plot by instance type and zone (SVG)."
)
@JSON
def show(model: Path, work: str, machine: str, zone: str, data: Path | None, plot: Path | None, as_json: bool) -> None:
    """Show the survival function of the saved MODEL, and the risk that a job on a machine of each age is preempted.

    \b
      shoestring lifetimes show model.json --work 6h
      shoestring lifetimes show model.json --machine n1-highcpu-32 --zone us-central1-c
      shoestring lifetimes show model.json --data lifetimes.csv --plot model.svg
    """
    from shoestring.analysis.lifetimes import draw_groups, load
    from shoestring.models.lifetimes.records import read_lifetimes
    from shoestring.units import parse_duration_s, show_duration

    work_s = parse_duration_s(work, "--work")
    saved = load(model)
    one = saved.model_for(machine, zone)
    rows = _by_age(saved, machine, zone, work_s)
    if plot is not None:
        draw_groups(plot, saved, None if data is None else read_lifetimes(data, limit_s=saved.pooled.limit_s))
    if as_json:
        plain = {"name": saved.name, "by": saved.by, "mean_s": one.mean_s(), "work_s": work_s}
        say_json(plain | {"multiplier": saved.multiplier(machine, zone), "ages": rows, "kinds": _kinds(saved)})
        return
    echo(_about(saved))
    echo(f"mean lifetime {show_duration(one.mean_s())}")
    echo("")
    titles = ("age", "survival", "hazard per hour", f"gone within {work}", "expected loss", "expected left")
    cells = [
        (
            show_duration(row["age_s"]) if row["age_s"] else "new",
            f"{row['survival']:.1%}",
            f"{row['hazard_per_h']:.3f}",
            f"{row['failure']:.1%}",
            show_duration(row["loss_s"]),
            show_duration(row["left_s"]),
        )
        for row in rows
    ]
    for line in aligned([titles, *cells], to_the_left=1):
        echo(line)
    _show_kinds(saved)
    if plot is not None:
        echo(f"wrote the plot to {plot}")


@command.command("eval", short_help="Compare models by cross-validation.")
@FILE
@click.option("--models", metavar="NAMES", help="Models, separated by commas.  [default: all]")
@click.option(
    "--folds", type=click.IntRange(min=2), default=10, show_default=True, help="Folds of the cross-validation."
)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Plot the models beside the data (SVG).")
@LIMIT
@MACHINES
@ZONES
@JSON
def evaluate(
    file: Path,
    models: str | None,
    folds: int,
    plot: Path | None,
    limit: str | None,
    machines: str | None,
    zones: str | None,
    as_json: bool,
) -> None:
    """Cross-validate models on FILE: each fold is predicted by a model fitted to the other folds.

    Machines launched on the same day stay in one fold. Higher log-likelihoods are better; KS is the largest distance
    between the predicted and the Kaplan-Meier survival, 0 at best. Released machines are right-censored in both.

    \b
      shoestring lifetimes eval lifetimes.csv
      shoestring lifetimes eval lifetimes.csv --models weibull_atom,bathtub_printed --plot models.svg
    """
    from dataclasses import asdict

    from shoestring.analysis.lifetimes import draw_models, score_models
    from shoestring.models.lifetimes.fit import suitable
    from shoestring.models.lifetimes.records import read_lifetimes
    from shoestring.units import show_duration

    seen = read_lifetimes(file, limit_s=_limit_s(limit), machines=_split(machines), zones=_split(zones))
    names = _split(models) or suitable(seen)
    scores = sorted(score_models(seen, names, folds), key=lambda row: -row.log_likelihood)
    if plot is not None:
        draw_models(plot, seen, names)
    if as_json:
        say_json([asdict(row) for row in scores])
        return
    echo(f"{len(seen)} machines, {int(seen.revoked.sum())} preempted, {int(seen.at_limit.sum())} at the limit")
    cells = [(row.model, f"{row.log_likelihood:.3f}", f"{row.ks:.3f}", show_duration(row.mean_s)) for row in scores]
    for line in aligned([("model", "log-likelihood", "KS", "mean lifetime"), *cells], to_the_left=1):
        echo(line)
    if plot is not None:
        echo(f"wrote the plot to {plot}")


# -- showing -----------------------------------------------------------------------------------------------------------
def _by_age(saved: SavedLifetimes, machine: str, zone: str, work_s: float) -> list[dict[str, float]]:
    import numpy as np

    model = saved.model_for(machine, zone)
    ages = np.array([age for age in AGES_S if float(model.survival(age)) > LEAST_SURVIVAL])
    columns = {
        "age_s": ages,
        "survival": model.survival(ages),
        # at age 0 some hazards are infinite: one minute later is more useful
        "hazard_per_h": model.hazard(np.maximum(ages, 60.0)) * 3600.0,
        "failure": model.failure_within(work_s, ages),
        "loss_s": model.expected_loss_s(work_s, ages),
        "left_s": model.expected_stay_s(np.inf, ages),
    }
    return [{name: float(values[row]) for name, values in columns.items()} for row in range(len(ages))]


AGES_S = tuple(hours * 3600.0 for hours in (0, 0.5, 1, 2, 4, 8, 12, 16, 20, 23, 36, 48, 96))
LEAST_SURVIVAL = 0.001
"""Ages that fewer machines reach are not shown."""


def _kinds(saved: SavedLifetimes) -> dict[str, Any]:
    plain: dict[str, Any] = {
        kinds.trait: {
            name: {"deaths": kind.deaths, "expected": kind.expected, "multiplier": kinds.multiplier(name)}
            for name, kind in kinds.kinds.items()
        }
        for kinds in saved.kinds
    }
    if saved.own is not None:
        plain["own"] = {
            "deaths": saved.own.deaths,
            "expected": saved.own.expected,
            "multiplier": saved.own_multiplier,
        }
    return plain


def _show_kinds(saved: SavedLifetimes) -> None:
    rows: list[tuple[str, ...]] = [
        (kinds.trait, name, f"{kind.deaths:.0f}", f"{kind.expected:.1f}", f"x{kinds.multiplier(name):.2f}")
        for kinds in saved.kinds
        for name, kind in kinds.kinds.items()
    ]
    if saved.own is not None:
        rows.append(("own", "", f"{saved.own.deaths:.0f}", f"{saved.own.expected:.1f}", f"x{saved.own_multiplier:.2f}"))
    if rows:
        echo("")
        for line in aligned([("group", "", "preempted", "expected", "hazard"), *rows], to_the_left=2):
            echo(line)


def _about(saved: SavedLifetimes) -> str:
    from shoestring.units import show_duration

    limit_s = saved.pooled.limit_s
    limit = "" if limit_s is None else f", limit {show_duration(limit_s)}"
    return f"{saved.name} from {saved.machines} machines, {saved.taken} of them preempted{limit}"


# -- reading -----------------------------------------------------------------------------------------------------------
def _split(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _limit_s(text: str | None) -> float | None:
    from shoestring.errors import SpecError
    from shoestring.units import parse_duration_s

    if text is None:
        return None
    seconds = parse_duration_s(text, "--limit")
    if not seconds > 0:
        raise SpecError("--limit must be more than 0", hint="for example 24h; leave it out where there is none")
    return seconds
