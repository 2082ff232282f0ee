"""Recipes whose new trials are proposed by TPE, a model of the earlier ones.

Options of all, beside those of every recipe: startup, gamma, candidates, random_share (see `TpeSampler`).
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.hyperband import Hyperband
from shoestring.policies.search.run_to_completion import Sampled
from shoestring.policies.search.samplers.model_based import TpeSampler
from shoestring.recipes.classic import bundle, halving_options, require_metric
from shoestring.recipes.options.parse import Options


def tpe(spec: RunSpec) -> Sequence[Policy]:
    """Trials proposed by TPE, each trained to max_steps (startup, gamma, candidates, random_share)."""
    require_metric(spec)
    options = Options(spec)
    return bundle(Sampled(_model(options, random_share=0.0)), options)


def asha_tpe(spec: RunSpec) -> Sequence[Policy]:
    """ASHA with trials proposed by TPE (options of asha and of tpe)."""
    options = Options(spec)
    return bundle(Asha(*halving_options(options, spec), sampler=_model(options, random_share=0.0)), options)


def bohb(spec: RunSpec) -> Sequence[Policy]:
    """Hyperband with two thirds of its trials proposed by TPE (options of hyperband and of tpe)."""
    options = Options(spec)
    return bundle(Hyperband(*halving_options(options, spec), sampler=_model(options, random_share=1 / 3)), options)


def _model(options: Options, *, random_share: float) -> TpeSampler:
    return TpeSampler(
        startup=options.whole("startup", 10, least=1),
        gamma=options.share("gamma", TpeSampler.gamma, least=0.01, most=0.99),
        candidates=options.whole("candidates", 24, least=1),
        random_share=options.share("random_share", random_share),
    )
