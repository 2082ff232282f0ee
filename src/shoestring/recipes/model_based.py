"""Recipes that draw new trials from a model of those before them.

Options of all, beside those of every recipe: startup, gamma, candidates, random_share (see `FromModel`).
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.hyperband import Hyperband
from shoestring.policies.search.run_to_completion import Sampled
from shoestring.policies.search.samplers.tpe_sampler import FromModel
from shoestring.recipes.classic import bundle, halving, needs_metric
from shoestring.recipes.options.parse import Options


def tpe(spec: RunSpec) -> Sequence[Policy]:
    """Drawn from a model of the trials so far, each trained to the end (startup, gamma, candidates, random_share)."""
    needs_metric(spec)
    options = Options(spec)
    return bundle(Sampled(_model(options, random_share=0.0)), options)


def asha_tpe(spec: RunSpec) -> Sequence[Policy]:
    """ASHA with trials drawn from a model of those before (options of asha and of tpe)."""
    options = Options(spec)
    return bundle(Asha(*halving(options, spec), sampler=_model(options, random_share=0.0)), options)


def bohb(spec: RunSpec) -> Sequence[Policy]:
    """Hyperband with two thirds of its trials drawn from a model (options of hyperband and of tpe)."""
    options = Options(spec)
    return bundle(Hyperband(*halving(options, spec), sampler=_model(options, random_share=1 / 3)), options)


def _model(options: Options, *, random_share: float) -> FromModel:
    return FromModel(
        startup=options.whole("startup", 10, least=1),
        gamma=options.share("gamma", FromModel.gamma, least=0.01, most=0.99),
        candidates=options.whole("candidates", 24, least=1),
        random_share=options.share("random_share", random_share),
    )
