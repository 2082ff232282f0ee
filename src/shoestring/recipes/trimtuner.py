"""TrimTuner: finds a good configuration that satisfies all constraints at low cost, with trials on data fractions.

Options of all, beside those of every recipe: parallel, patience.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.constraints.stop_early import PruneAtConstraints
from shoestring.policies.search.trimtuner.policy import TrimTunerSearch
from shoestring.recipes.classic import bundle, require_metric
from shoestring.recipes.options.parse import Options


def trimtuner(spec: RunSpec) -> Sequence[Policy]:
    """Bayesian optimisation of configurations, machines and data fractions under constraints (parallel, patience)."""
    return _by(spec, "trimtuner")


def trimtuner_gp_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """TrimTuner with Gaussian processes exactly as its paper prints it, for comparison (parallel, patience)."""
    return _by(spec, "trimtuner_gp_as_printed")


def trimtuner_dt_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """TrimTuner with tree ensembles exactly as its paper prints it, for comparison (parallel, patience)."""
    return _by(spec, "trimtuner_dt_as_printed")


def _by(spec: RunSpec, method: str) -> Sequence[Policy]:
    require_metric(spec)
    options = Options(spec)
    search = TrimTunerSearch(
        method=method,
        parallel=options.whole("parallel", TrimTunerSearch.parallel, least=1),
        patience=options.whole("patience", 1, least=1) if options.is_given("patience") else None,
    )
    policies = bundle(search, options)
    return (search, PruneAtConstraints(gives_up=method == "trimtuner"), *policies[1:])
