"""Plots like the paper's Figures 5, 7, 8, 10 and 11, with our results: one PNG."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scispot_bags import Outcome
from benchmarks.scispot_choice import APPLICATIONS, CPUS, Chosen
from benchmarks.scispot_lives import Split
from benchmarks.scispot_reuse import AGES_S, RULES, SETUP_S, failures
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.models.lifetimes.reuse import reuse_saves_s, transition_points


def draw(
    path: Path,
    splits: Sequence[Split],
    failed: Mapping[str, Mapping[float, float]],
    found: Sequence[Chosen],
    bags: Mapping[float, Sequence[Outcome]],
) -> None:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(15, 9), layout="constrained")
    panels = drawn.subplots(2, 3)
    _reuse(panels[0][0], panels[0][1], splits)
    for name, rule in RULES.items():
        panels[0][2].plot(AGES_S / HOUR_S, failures(splits, rule, 6.0), label=name)
    panels[0][2].set(title="Fig. 7: jobs of 6 h that are lost", xlabel="age of the machine that is there, h")
    for name, lengths in failed.items():
        panels[1][0].plot(list(lengths), list(lengths.values()), marker=".", label=name)
    panels[1][0].set(title="Fig. 8: jobs that are lost", xlabel="length of a job, h")
    panels[0][2].legend(fontsize="small")
    panels[1][0].legend(fontsize="small")
    _sizes(panels[1][1], found)
    _costs(panels[1][2], found, bags)
    drawn.savefig(path)


def _reuse(times: Any, boundary: Any, splits: Sequence[Split]) -> None:
    lifetimes = splits[0].fitted
    lengths_s = np.arange(0.25, 24.0, 0.25) * HOUR_S
    for age_h in (1, 6, 12, 18):
        saves = reuse_saves_s(lifetimes, lengths_s, age_h * HOUR_S, SETUP_S) / HOUR_S
        times.plot(lengths_s / HOUR_S, np.clip(-saves, -2, 6), label=f"{age_h} h old")
    times.axhline(0.0, color="grey", linewidth=0.5)
    times.set(title="Fig. 5a: longer on the old machine, h", xlabel="length of a job, h")
    times.legend(fontsize="small")
    points = transition_points(lifetimes, SETUP_S)
    boundary.plot(points.age_s / HOUR_S, np.minimum(points.longest_s, 24 * HOUR_S) / HOUR_S)
    boundary.set(title="Fig. 5b: below the line the old machine is used", xlabel="age, h", ylabel="length of a job, h")


def _sizes(panel: Any, found: Sequence[Chosen]) -> None:
    """Work and what losses add to it, per application, in minutes."""
    for application in APPLICATIONS:
        mine = [x for x in found if x.application == application.name and x.longer == 1]
        sizes = sorted({size for x in mine for size in x.by_size})
        work = [statistics.fmean(x.by_size[size][0] for x in mine if size in x.by_size) / 60 for size in sizes]
        panel.plot([str(size) for size in sizes], work, marker="o", label=application.name)
    panel.set(title=f"Fig. 10: minutes of a job on {CPUS} CPUs", xlabel="CPUs of a machine")
    panel.legend(fontsize="small")


def _costs(panel: Any, found: Sequence[Chosen], bags: Mapping[float, Sequence[Outcome]]) -> None:
    names = ("ours", "Eq. 11 as printed", "portfolio", "cheapest per CPU")
    shares = [statistics.fmean(x.usd[name] / x.usd["on demand"] for x in found) for name in names]
    shares += [statistics.fmean(bag.usd / bag.on_demand_usd for bag in played) for played in bags.values()]
    labels = [*names, *(f"bag of {hours:g} h jobs" for hours in bags)]
    panel.barh(labels[::-1], shares[::-1])
    panel.axvline(1.0, color="grey", linewidth=0.5)
    panel.set(title="Fig. 11: dollars, on demand = 1")
