"""Recipes that train every trial part of the way and promote the best by predicted final values.

Options of both, beside those of every recipe: theta, mcnt, curve, plateau, sampler.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.theta.policy import CURVES, Theta
from shoestring.policies.search.theta.stopping import StopHopeless
from shoestring.recipes.classic import bundle, require_metric
from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.sampler import chosen_sampler


def theta(spec: RunSpec) -> Sequence[Policy]:
    """All trials run to theta of max_steps; the mcnt best by predicted final value finish (theta, mcnt, curve)."""
    options = Options(spec)
    return bundle(theta_search(spec, options), options)


def theta_adaptive(spec: RunSpec) -> Sequence[Policy]:
    """As theta, and a trial predicted not to be among the best is pruned at once (confidence, grace)."""
    options = Options(spec)
    search = theta_search(spec, options)
    rule = StopHopeless(
        mcnt=search.mcnt,
        curve=search.curve,
        confidence=options.share("confidence", StopHopeless.confidence, least=0.5),
        grace=options.share("grace", StopHopeless.grace),
    )
    return (rule, *bundle(search, options))


def theta_search(spec: RunSpec, options: Options) -> Theta:
    """The search with its options."""
    require_metric(spec)
    return Theta(
        theta=options.share("theta", Theta.theta, least=0.05),
        mcnt=options.whole("mcnt", Theta.mcnt, least=1),
        curve=options.word("curve", CURVES),
        plateau=options.share("plateau", Theta.plateau),
        sampler=chosen_sampler(options),
    )
