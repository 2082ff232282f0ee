"""The recipes everybody knows: a search, with a choice of placement and of checkpointing.

Options of all: placement = "slack" | "cheapest" | "cheapest_step" | "refund_seeking" | "as_printed" | "on_demand" |
"greedy" | "uniform_progress", some with options of their own (`placing`: revocations, rotate);
checkpointing = "periodic" (every_s = "15m") | "on_notice" | "programme" | "young_daly" | "young_daly_1h" | "none", some
by the lifetimes of machines (`lifetimes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.checkpointing.retention import Retention
from shoestring.policies.housekeeping.closing import Closing
from shoestring.policies.housekeeping.renewal import Renewal
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.cheapest_step import CheapestStep
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.placement.slack.policy import Greedy, Slack, UniformProgress
from shoestring.policies.placement.spottune.as_printed import AsPrinted
from shoestring.policies.placement.spottune.refund_seeking import RefundSeeking
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.hyperband import Hyperband
from shoestring.policies.search.halving.successive_halving import SuccessiveHalving
from shoestring.policies.search.run_to_completion import Given, Grid, RandomSearch, Sampled
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER
from shoestring.recipes.options.checkpointing import saving
from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.placement import Placement, pinning, placed
from shoestring.recipes.options.sampler import chosen_sampler

PLACEMENTS: dict[str, type[Placement]] = {
    "cheapest": Cheapest,
    "cheapest_step": CheapestStep,
    "refund_seeking": RefundSeeking,
    "as_printed": AsPrinted,
    "on_demand": OnDemand,
    "slack": Slack,
    "greedy": Greedy,
    "uniform_progress": UniformProgress,
}
"""By the name that the option `placement` gives them."""


def asha(spec: RunSpec) -> Sequence[Policy]:
    """Trials are stopped early as they come: the best third of each rung goes on, nobody waits (eta, grace_steps)."""
    options = Options(spec)
    return bundle(Asha(*halving(options, spec), sampler=chosen_sampler(options)), options)


def hyperband(spec: RunSpec) -> Sequence[Policy]:
    """Successive halving with several first rungs, for when early values may mislead (eta, grace_steps, sampler)."""
    options = Options(spec)
    return bundle(Hyperband(*halving(options, spec), sampler=chosen_sampler(options)), options)


def successive_halving(spec: RunSpec) -> Sequence[Policy]:
    """All trials take the first rung, the best third take the next, and so on (eta, grace_steps, sampler)."""
    options = Options(spec)
    return bundle(SuccessiveHalving(*halving(options, spec), sampler=chosen_sampler(options)), options)


def random(spec: RunSpec) -> Sequence[Policy]:
    """Trials drawn at random, or by another sampler, each trained to the end (sampler)."""
    options = Options(spec)
    sampler = chosen_sampler(options)
    if sampler == RANDOM_SAMPLER:
        return bundle(RandomSearch(), options)
    needs_metric(spec)
    return bundle(Sampled(sampler), options)


def grid(spec: RunSpec) -> Sequence[Policy]:
    """Every combination of the space, ranges cut into a few points, each trained to the end (points)."""
    options = Options(spec)
    return bundle(Grid(points=options.whole("points", 5, least=1)), options)


def given(spec: RunSpec) -> Sequence[Policy]:
    """The configurations that were given, and no others: a bag of jobs."""
    if not spec.given:
        raise SpecError(
            "recipe='given' runs what is given, and nothing is", hint="fill `given`, or use recipe='random'"
        )
    return bundle(Given(), Options(spec))


def bundle(
    search: Policy,
    options: Options,
    *,
    elastic: bool = False,
    widths: bool = False,
    placement: str = "slack",
    checkpointing: str = "periodic",
) -> tuple[Policy, ...]:
    """A search with everything around it, in the order in which they must be asked: what to run, where, how to save
    it; then the machines' prepaid time, the end of the run, and the checkpoints nobody needs any more.

    `elastic`: the search says at every turn all that it wants, so a machine nobody asks for is given back at once, and
    what runs is moved together where that frees one. `widths`: its trials are of several widths, as those of elastic
    searches always are. `placement` and `checkpointing`: the recipe's defaults.

    In a space that holds machines, `Pinning` sends trials to those that they name; who plans with machines and widths
    of its own cannot have such a space."""
    roles = options.spec.space.roles
    if roles and (elastic or widths):
        raise SpecError(
            f"recipe={options.spec.recipe!r} plans with machines and widths of its own, "
            f"and {', '.join(roles.values())} in the space would decide them",
            hint="use recipe='tpe', 'asha' or another that leaves a trial where it is, or take them out of the space",
        )
    if placement == "slack" and all(not listing.offer.spot for listing in options.spec.listings):
        placement = "cheapest"  # nobody takes anything away: there is no choice to be made, and nothing to look after
    kind = PLACEMENTS[options.word("placement", _first(placement, PLACEMENTS))]
    where = placed(kind, options, elastic=elastic, widths=elastic or widths or "count" in roles)
    saves = saving(options, checkpointing)
    options.finish()
    return (search, *pinning(options.spec, kind), *where, *saves, Renewal(), Closing(), Retention())


def uses_spot(options: Options) -> bool:
    """May the placement that was asked for rent machines that can be taken away?"""
    return options.word("placement", tuple(PLACEMENTS)) != "on_demand"


def _first(default: str, words: Iterable[str]) -> tuple[str, ...]:
    """The words with the default in front, where `Options.word` looks for it."""
    return (default, *(word for word in words if word != default))


def needs_metric(spec: RunSpec) -> None:
    if spec.metric is None:
        raise SpecError(
            f"recipe={spec.recipe!r} compares trials, but the run has no metric",
            hint="say what to minimize or maximize, or use recipe='given'",
        )


def halving(options: Options, spec: RunSpec) -> tuple[int, int]:
    """eta and grace_steps."""
    needs_metric(spec)
    grace_steps = options.whole("grace_steps", 1, least=1)
    if grace_steps > spec.max_steps:
        raise SpecError(
            f"options.grace_steps={grace_steps} is more than max_steps={spec.max_steps}",
            hint="lower it: a trial is first compared after grace_steps",
        )
    return options.whole("eta", 3, least=2), grace_steps
