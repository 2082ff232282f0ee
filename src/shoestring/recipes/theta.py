"""Recipes that train every trial part of the way and let its curve tell whether it goes on.

Options of both, beside those of every recipe: theta, mcnt, curve, plateau, sampler.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.theta.policy import CURVES, Theta
from shoestring.policies.search.theta.stopping import StopHopeless
from shoestring.recipes.classic import bundle, needs_metric
from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.sampler import chosen_sampler


def theta(spec: RunSpec) -> Sequence[Policy]:
    """All trials to theta of their steps; those whose curves promise most go on to the end (theta, mcnt, curve)."""
    options = Options(spec)
    return bundle(part_of_the_way(spec, options), options)


def theta_adaptive(spec: RunSpec) -> Sequence[Policy]:
    """As theta, and a trial that cannot be among the best any more is dropped at once (confidence, grace)."""
    options = Options(spec)
    search = part_of_the_way(spec, options)
    rule = StopHopeless(
        mcnt=search.mcnt,
        curve=search.curve,
        confidence=options.share("confidence", StopHopeless.confidence, least=0.5),
        grace=options.share("grace", StopHopeless.grace),
    )
    return (rule, *bundle(search, options))


def part_of_the_way(spec: RunSpec, options: Options) -> Theta:
    """The search, as its options say."""
    needs_metric(spec)
    return Theta(
        theta=options.share("theta", Theta.theta, least=0.05),
        mcnt=options.whole("mcnt", Theta.mcnt, least=1),
        curve=options.word("curve", CURVES),
        plateau=options.share("plateau", Theta.plateau),
        sampler=chosen_sampler(options),
    )
