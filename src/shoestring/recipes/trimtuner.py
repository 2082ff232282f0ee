"""TrimTuner: the cheapest way to a good configuration that keeps all limits, learning from parts of the data.

Options of all, beside those of every recipe: parallel, patience.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.limits.stop_at_limit import EndAtLimits
from shoestring.policies.search.trimtuner.policy import TrimTunerSearch
from shoestring.recipes.classic import bundle, needs_metric
from shoestring.recipes.options.parse import Options


def trimtuner(spec: RunSpec) -> Sequence[Policy]:
    """Configurations, machines and parts of the data by models, under limits on cost and more (parallel, patience)."""
    return _by(spec, "trimtuner")


def trimtuner_gp_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """TrimTuner with Gaussian processes to the letter of its paper, for comparison (parallel, patience)."""
    return _by(spec, "trimtuner_gp_as_printed")


def trimtuner_dt_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """TrimTuner with ensembles of trees to the letter of its paper, for comparison (parallel, patience)."""
    return _by(spec, "trimtuner_dt_as_printed")


def _by(spec: RunSpec, method: str) -> Sequence[Policy]:
    needs_metric(spec)
    options = Options(spec)
    search = TrimTunerSearch(
        method=method,
        parallel=options.whole("parallel", TrimTunerSearch.parallel, least=1),
        patience=options.whole("patience", 1, least=1) if options.asked("patience") else None,
    )
    policies = bundle(search, options)
    return (search, EndAtLimits(gives_up=method == "trimtuner"), *policies[1:])
