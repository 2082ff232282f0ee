"""How well curve models predict the end of a learning curve from its first part, and what a search gains from it.

Groups of sixteen recorded curves; of each trial the first theta of its steps is given. Error: the relative error of the
prediction (at most one), for trials that did not diverge. Top-1, top-3: the share of groups in which the trial that
ends best is predicted first, or among the first three. Every group counts the same, and every curve is in one group.
All are for reporting: nothing was tuned on them. Whether the best of a group is found depends on the others in it, so
the goals are about many random groupings of the same curves.

The network whose learning rate falls in steps is trained here, and so are the workloads, once (not with --quick).
Recorded tables are left out where they are not available.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import earlycurve_network as network
from benchmarks.datasets import add_held_out_option, announce, held_out
from benchmarks.earlycurve_groups import Group, recorded, tables, workloads
from benchmarks.earlycurve_plot import draw
from benchmarks.earlycurve_studies import studied
from benchmarks.plotting import add_plot_option, check_plot
from benchmarks.rows import Row, parser, publish
from benchmarks.workload_curves import WORKLOADS
from shoestring.models.curves.model import CurveModel
from shoestring.models.curves.registry import CURVE_MODELS, DEFAULT

THETAS = tuple(round(0.1 * tenths, 1) for tenths in range(1, 11))
DRAWS = 20
JUDGED_AT = 0.7
"""The paper's theta, at which the goals are set."""


@dataclass(frozen=True)
class Score:
    """Of one model on one group at one theta."""

    error: float
    top1: bool
    top3: bool
    covered: float
    """The share of trials that end within 1.96 deviations of the prediction."""


def score(model: CurveModel, group: Group, theta: float) -> Score:
    shown = max(1, round(theta * group.steps))
    steps = range(1, shown + 1)
    outlooks = [
        model.predict(steps, values[:shown].tolist(), group.steps, group.direction, boundaries)
        for values, boundaries in zip(group.curves, group.boundaries, strict=True)
    ]
    sign = 1.0 if group.direction == "minimize" else -1.0
    expected, deviations = np.array([(sign * mean, deviation) for mean, deviation in outlooks]).T
    finals = group.finals
    known = np.isfinite(finals) & np.isfinite(expected)
    off = np.abs(expected[known] - finals[known])
    order, best = np.argsort(expected, kind="stable"), int(np.argmin(finals))
    return Score(
        float(np.mean(np.minimum(1.0, off / np.maximum(np.abs(finals[known]), 1e-12)))),
        bool(order[0] == best),
        bool(best in order[:3]),
        float(np.mean(off <= 1.96 * deviations[known] + 1e-12)),
    )


def row(name: str, groups: Sequence[Group], values: Sequence[float]) -> Row:
    """The mean over all groups, and that of each source."""
    parts: dict[str, list[float]] = {}
    for group, value in zip(groups, values, strict=True):
        parts.setdefault(group.source, []).append(value)
    told = ", ".join(f"{source} {statistics.fmean(part):.3f} ({len(part)})" for source, part in parts.items())
    return Row(name, statistics.fmean(values), "share", told)


def predictions(groups: Sequence[Group], thetas: Iterable[float]) -> dict[tuple[str, str, float], Row]:
    """Every model at every theta, by model, figure and theta."""
    found: dict[tuple[str, str, float], Row] = {}
    for name, model in CURVE_MODELS.items():
        for theta in thetas:
            scores = [score(model, group, theta) for group in groups]
            for what in ("error", "top1", "top3", "covered"):
                values = [float(getattr(each, what)) for each in scores]
                found[name, what, theta] = row(f"{name}_{what}_at_{theta}", groups, values)
    return found


def goals(draws: Sequence[Sequence[Group]]) -> list[Row]:
    """The rows of the goals, over all groupings, and the calibration of the default."""
    groups = [group for draw in draws for group in draw]
    ours, plain = (
        [score(CURVE_MODELS[name], group, JUDGED_AT) for group in groups] for name in (DEFAULT, "last_value")
    )
    top1, top1_plain = (np.reshape([each.top1 for each in scores], (len(draws), -1)) for scores in (ours, plain))
    ratios = np.sort(top1.mean(axis=1) / top1_plain.mean(axis=1))
    ratio = (
        f"goal >= 1.0; {top1.mean():.3f} and {top1_plain.mean():.3f} in {len(draws)} draws of {len(draws[0])} groups; "
        f"{ratios[0]:.3f} to {ratios[-1]:.3f} in one draw, {ratios[len(ratios) // 2]:.3f} by the median"
    )
    top3 = row("", groups, [float(each.top3) for each in ours])
    certain = "of trials end within 1.96 deviations; 0.95 if predictions knew exactly how uncertain they are"
    return [
        Row("default_top3_at_0.7", top3.value, "share", f"goal >= 0.95; {top3.against}"),
        Row("default_top1_vs_last_value", float(top1.mean() / top1_plain.mean()), "ratio", ratio),
        Row("default_covered_at_0.7", statistics.fmean(each.covered for each in ours), "share", certain),
    ]


def fit_time() -> Row:
    """Of the default, on noisy power laws."""
    model, rng, times = CURVE_MODELS[DEFAULT], np.random.default_rng(0), []
    for number in range(200):
        count = 50 + number % 51
        steps = range(1, count + 1)
        values = (0.3 + np.arange(1, count + 1) ** -0.7 + rng.normal(0, 0.01, count)).tolist()
        began = time.process_time()
        model.predict(steps, values, 2 * count, "minimize")
        times.append(1e3 * (time.process_time() - began))
    return Row("fit_ms", statistics.median(times), "ms", "goal <= 3; the default, CPU, curves of 50 to 100 points")


def step_decay(curves: Sequence[network.Curve]) -> Row:
    """Stages declared by the schedule, against one law for the whole curve."""
    shown = round(JUDGED_AT * network.STEPS)

    def error(name: str, boundaries: tuple[int, ...] = network.FALLS) -> float:
        model, steps = CURVE_MODELS[name], range(1, shown + 1)
        ends = [model.predict(steps, c.values[:shown], network.STEPS, "minimize", boundaries).mean for c in curves]
        return statistics.fmean(abs(end - c.values[-1]) / c.values[-1] for end, c in zip(ends, curves, strict=True))

    staged, single = error("earlycurve"), error("slaq")
    others = (
        f"the default {error(DEFAULT):.3f} (undeclared {error(DEFAULT, ()):.3f}), last value {error('last_value'):.3f}"
    )
    how = f"goal < 0.5; earlycurve {staged:.3f}, slaq {single:.3f}; {others}; {len(curves)} networks trained"
    return Row("staged_error_vs_single_stage_on_step_decay", staged / single, "ratio", how)


def studies(groups: Sequence[Group]) -> list[Row]:
    rows = []
    for recipe in ("theta", "theta_adaptive"):
        outcomes = [studied(group, recipe) for group in groups]
        rows.append(row(f"{recipe}_keeps_best", groups, [float(outcome.kept_best) for outcome in outcomes]))
        rows.append(row(f"{recipe}_steps_vs_all", groups, [outcome.steps for outcome in outcomes]))
    return rows


def main() -> None:
    options = parser(__doc__ or "")
    add_plot_option(options, "curves as they were and as foretold, like the paper's Figure 11, and errors by theta")
    add_held_out_option(options)
    args = options.parse_args()
    check_plot(args.plot)
    trained = [] if args.quick or held_out() else list(workloads())
    announce("curves", tables())
    if trained:
        announce("workloads", WORKLOADS)
    most, count = (2, 3) if args.quick else (62, DRAWS)
    draws = [[*recorded(most, draw), *trained] for draw in range(count)]
    groups = draws[0]
    falling = network.trained(network.CONFIGS[::4] if args.quick else network.CONFIGS)
    found = predictions(groups, (0.3, 0.7, 1.0) if args.quick else THETAS) if groups else {}
    judged = goals(draws) if groups else []
    studied_rows = studies(groups) if groups else []
    publish(
        [*judged[:2], fit_time(), step_decay(falling), *judged[2:], *studied_rows, *found.values()],
        args.json,
    )
    if args.plot:
        draw(found, groups, falling, JUDGED_AT, args.plot)


if __name__ == "__main__":
    main()
