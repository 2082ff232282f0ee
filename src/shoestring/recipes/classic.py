"""The classic recipes: a well-known search, with a choice of placement and of checkpointing.

Options of all: placement = "slack" | "cheapest" | "cheapest_step" | "refund_seeking" | "spottune_as_printed" |
"on_demand" | "greedy" | "uniform_progress", some with options of their own (`options.placement`: revocations, rotate);
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
from shoestring.policies.search.halving.asha import Asha
from shoestring.policies.search.halving.hyperband import Hyperband
from shoestring.policies.search.halving.successive import SuccessiveHalving
from shoestring.policies.search.run_to_completion import Given, Grid, RandomSearch, Sampled
from shoestring.policies.search.samplers.protocol import RANDOM_SAMPLER
from shoestring.recipes.options.checkpointing import checkpointing_policies
from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.placement import PLACEMENTS, pinning, placement_policies
from shoestring.recipes.options.sampler import chosen_sampler


def asha(spec: RunSpec) -> Sequence[Policy]:
    """Asynchronous successive halving: the top third of each rung is promoted without waiting (eta, grace_steps)."""
    options = Options(spec)
    return bundle(Asha(*halving_options(options, spec), sampler=chosen_sampler(options)), options)


def hyperband(spec: RunSpec) -> Sequence[Policy]:
    """Successive halving with several first rungs, in case early values mislead (eta, grace_steps, sampler)."""
    options = Options(spec)
    return bundle(Hyperband(*halving_options(options, spec), sampler=chosen_sampler(options)), options)


def successive_halving(spec: RunSpec) -> Sequence[Policy]:
    """All trials run to the first rung, the top third to the next, and so on (eta, grace_steps, sampler)."""
    options = Options(spec)
    return bundle(SuccessiveHalving(*halving_options(options, spec), sampler=chosen_sampler(options)), options)


def random(spec: RunSpec) -> Sequence[Policy]:
    """Trials sampled at random, or by another sampler, each trained to max_steps (sampler)."""
    options = Options(spec)
    sampler = chosen_sampler(options)
    if sampler == RANDOM_SAMPLER:
        return bundle(RandomSearch(), options)
    require_metric(spec)
    return bundle(Sampled(sampler), options)


def grid(spec: RunSpec) -> Sequence[Policy]:
    """Every combination of the space, with a few points per range, each trained to max_steps (points)."""
    options = Options(spec)
    return bundle(Grid(points=options.whole("points", 5, least=1)), options)


def given(spec: RunSpec) -> Sequence[Policy]:
    """Exactly the configurations given by the user: a bag of jobs."""
    if not spec.given:
        raise SpecError(
            "recipe='given' runs the configurations in `given`, which is empty",
            hint="fill `given`, or use recipe='random'",
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
    """A search with all other policies, in the order in which they must decide: what to run, where, when to save; then
    the machines' prepaid time, the end of the run, and the deletion of checkpoints.

    `elastic`: the search states all its demand at every turn, so an idle machine is released at once, and trials are
    consolidated where that frees one. `widths`: its trials use different numbers of slots, as those of elastic searches
    always do. `placement` and `checkpointing`: the recipe's defaults.

    If the space contains machines, `Pinning` places trials on those they name; a recipe that plans machines and widths
    itself cannot have such a space."""
    roles = options.spec.space.roles
    if roles and (elastic or widths):
        raise SpecError(
            f"recipe={options.spec.recipe!r} chooses machines and slots itself, "
            f"but {', '.join(roles.values())} in the space would choose them too",
            hint="use recipe='tpe', 'asha' or another that does not, or remove them from the space",
        )
    if options.spec.code.launch == "once" and (elastic or widths):
        raise SpecError(
            f"launch='once' needs machines that are rented together for one job, and recipe={options.spec.recipe!r} "
            "spreads trials over whatever slots are free",
            hint="use recipe='scispot' with options.gangs, or a recipe whose trials run on one machine",
        )
    if placement == "slack" and all(not listing.offer.spot for listing in options.spec.listings):
        placement = "cheapest"  # nothing can be preempted: there is no risk to manage
    word = options.word("placement", _first(placement, PLACEMENTS))
    where = placement_policies(word, options, elastic=elastic, widths=elastic or widths or "count" in roles)
    saves = checkpointing_policies(options, checkpointing)
    options.finish()
    pins = pinning(options.spec, only_on_demand=word == "on_demand")
    return (search, *pins, *where, *saves, Renewal(), Closing(), Retention())


def uses_spot(options: Options) -> bool:
    """May the chosen placement rent spot machines?"""
    return options.word("placement", PLACEMENTS) != "on_demand"


def _first(default: str, words: Iterable[str]) -> tuple[str, ...]:
    """The values with the default in front, where `Options.word` expects it."""
    return (default, *(word for word in words if word != default))


def require_metric(spec: RunSpec) -> None:
    if spec.metric is None:
        raise SpecError(
            f"recipe={spec.recipe!r} compares trials, but the run has no metric",
            hint="set minimize or maximize, or use recipe='given'",
        )


def halving_options(options: Options, spec: RunSpec) -> tuple[int, int]:
    """eta and grace_steps."""
    require_metric(spec)
    grace_steps = options.whole("grace_steps", 1, least=1)
    if grace_steps > spec.max_steps:
        raise SpecError(
            f"options.grace_steps={grace_steps} is more than max_steps={spec.max_steps}",
            hint="lower it: a trial is first ranked after grace_steps",
        )
    return options.whole("eta", 3, least=2), grace_steps
