"""Lifetime models from files and from the user's own runs: what `shoestring lifetimes` does, without the printing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shoestring.errors import DataError
from shoestring.runs.folder import find_run

if TYPE_CHECKING:
    from shoestring.models.lifetimes.model import LifetimeModel
    from shoestring.models.lifetimes.records import LifetimeRecords
    from shoestring.models.lifetimes.saved import SavedLifetimes
    from shoestring.report.plots.lifetimes import SurvivalLine

FOLDS = 10
DRAWN = 400
"""Points of a plotted line."""
FEW_LINES = 8
"""More lines than this cannot be distinguished by colour: the rest are dashed."""
LEAST_DRAWN = 5
"""Groups with fewer deaths are left out of plots: their curve would be noise."""


def of_runs(
    names: Sequence[str],
    store: str | None = None,
    *,
    limit_s: float | None = None,
    machines: Collection[str] | None = None,
    zones: Collection[str] | None = None,
) -> LifetimeRecords:
    """The spot machines of these runs."""
    from shoestring.models.lifetimes.from_journal import lifetimes_of_run
    from shoestring.models.lifetimes.records import LifetimeRecords, select

    records = [record for name in names for record in lifetimes_of_run(find_run(name, store).entries())]
    if not records:
        raise DataError(
            f"{', '.join(names)}: no spot machine in these runs",
            hint="lifetimes are learned from spot machines; local and on-demand machines are not preempted",
        )
    return LifetimeRecords.of(select(records, machines, zones), limit_s, ", ".join(names))


def save(saved: SavedLifetimes, path: Path) -> None:
    from shoestring.models.lifetimes.saved import encoded

    _write(path, encoded(saved))


def load(path: Path) -> SavedLifetimes:
    from shoestring.models.lifetimes.saved import decoded

    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}", hint="make a model with shoestring lifetimes fit"
        ) from error
    return decoded(content, str(path))


# -- scoring -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ModelScore:
    model: str
    log_likelihood: float
    ks: float
    mean_s: float
    """The expected lifetime, fitted to all machines."""


def score_models(
    seen: LifetimeRecords, names: Sequence[str], count: int = FOLDS, seed: int = 0
) -> Iterator[ModelScore]:
    """Each model on held-out machines."""
    from shoestring.models.lifetimes.fit import fit, require_known
    from shoestring.models.lifetimes.scores import cross_validated, folds

    for name in names:
        require_known(name)  # before the others are fitted
    parts = folds(seen, count, seed)
    for name in names:
        scores = cross_validated(partial(fit, name), seen, parts)
        yield ModelScore(name, scores.log_likelihood, scores.ks, fit(name, seen).mean_s())


# -- plots -------------------------------------------------------------------------------------------------------------
def draw_models(path: Path, seen: LifetimeRecords, names: Sequence[str]) -> None:
    """The share gone by each age: as observed (Kaplan-Meier), and of each model (the paper's Figure 2)."""
    from shoestring.models.lifetimes.fit import KAPLAN_MEIER, fit
    from shoestring.report.plots.lifetimes import Panel, lifetimes_picture

    end_s = float(seen.seconds.max())
    lines = [_counted("as counted", seen, None)]
    for number, name in enumerate(name for name in names if name != KAPLAN_MEIER):
        lines.append(_fitted(name, fit(name, seen), end_s, number, dashed=number >= FEW_LINES))
    title = f"lifetimes of {len(seen)} machines, {int(seen.revoked.sum())} of them preempted"
    _write(path, lifetimes_picture(title, [Panel("share gone", lines)]).encode())


def draw_groups(path: Path, saved: SavedLifetimes, seen: LifetimeRecords | None) -> None:
    """The same by machine type, zone and time of launch (the paper's Figure 3). With `seen`, the observed shares are
    drawn in steps, and the fitted ones dashed."""
    import numpy as np

    from shoestring.models.lifetimes.groups import scaled, trait_names
    from shoestring.report.plots.lifetimes import Panel, lifetimes_picture

    pooled = saved.pooled
    end_s = float(pooled.quantile(0.95)) if seen is None else float(seen.seconds.max())
    panels = [Panel("share gone", _beside("all machines", pooled, end_s, None, seen))]
    for kinds in saved.kinds:
        of = [] if seen is None else trait_names(seen, kinds.trait)
        many = [name for name, kind in kinds.kinds.items() if kind.deaths >= LEAST_DRAWN]
        lines = []
        for number, name in enumerate(many):
            model = scaled(pooled, kinds.multiplier(name))
            mine = [row for row, kind in enumerate(of) if kind == name]
            lines += _beside(
                name, model, end_s, number, None if seen is None or not mine else seen.pick(np.array(mine))
            )
        if lines:
            panels.append(Panel(f"share gone by {_WORDS[kinds.trait]}", lines))
    _write(path, lifetimes_picture(f"lifetimes by kind of machine ({saved.name})", panels).encode())


_WORDS = {"machine": "machine type", "zone": "zone", "time": "time of launch", "weekday": "day of launch"}


def _beside(
    name: str, model: LifetimeModel, end_s: float, colour: int | None, machines: LifetimeRecords | None
) -> list[SurvivalLine]:
    if machines is None:
        return [_fitted(name, model, end_s, colour)]
    return [_counted(name, machines, colour), _fitted("", model, end_s, colour, dashed=True)]


def _fitted(name: str, model: LifetimeModel, end_s: float, colour: int | None, *, dashed: bool = False) -> SurvivalLine:
    import numpy as np

    from shoestring.report.plots.lifetimes import SurvivalLine

    ages = np.linspace(0.0, end_s, DRAWN)
    return SurvivalLine(name, list(zip(ages.tolist(), model.cdf(ages).tolist(), strict=True)), colour, dashed=dashed)


def _counted(name: str, machines: LifetimeRecords, colour: int | None) -> SurvivalLine:
    """The Kaplan-Meier estimate: steps at the deaths."""
    from shoestring.models.lifetimes.kaplan_meier import product_limit
    from shoestring.report.plots.lifetimes import SurvivalLine

    ages, alive = product_limit(machines.seconds, machines.revoked)
    points = [(0.0, 0.0), *zip(ages.tolist(), (1.0 - alive).tolist(), strict=True)]
    return SurvivalLine(name, points, colour, counted=True)


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error
