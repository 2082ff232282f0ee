"""TrimTuner: finds a good configuration that satisfies all constraints at low cost, with trials on data fractions.

Options of all, beside those of every recipe: parallel, patience; of `trimtuner` also method.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.constraints.stop_early import PruneAtConstraints
from shoestring.policies.search.trimtuner.policy import TrimTunerSearch
from shoestring.recipes.classic import bundle, require_metric
from shoestring.recipes.options.parse import Options

METHODS = ("trimtuner", "trimtuner_gp", "trimtuner_dt")
"""Ours; the entropy search of the paper, corrected, with Gaussian processes; and the same with trees."""


def trimtuner(spec: RunSpec) -> Sequence[Policy]:
    """Bayesian optimisation of configurations, machines, fractions under constraints (method, parallel, patience)."""
    options = Options(spec)
    search, *others = _by(options, options.word("method", METHODS), parallel=TrimTunerSearch.parallel)
    return (search, PruneAtConstraints(), *others)


def trimtuner_gp_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """TrimTuner with Gaussian processes exactly as its paper prints it, for comparison (parallel, patience)."""
    return _by(Options(spec), "trimtuner_gp_as_printed", parallel=1)


def trimtuner_dt_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """TrimTuner with tree ensembles exactly as its paper prints it, for comparison (parallel, patience)."""
    return _by(Options(spec), "trimtuner_dt_as_printed", parallel=1)


def _by(options: Options, method: str, *, parallel: int) -> Sequence[Policy]:
    """In print, runs are one after the other, and each goes to its end: only ours are ended at a constraint."""
    require_metric(options.spec)
    search = TrimTunerSearch(
        method=method,
        parallel=options.whole("parallel", parallel, least=1),
        patience=options.whole("patience", 1, least=1) if options.is_given("patience") else None,
    )
    return bundle(search, options)
