"""The option `placement`: where trials run; and its own options: the revocation model, and whether trials leave their
machines after some time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.recipes.lazy_table import LazyTable
from shoestring.recipes.options.model_files import chosen_risk
from shoestring.recipes.options.parse import Options
from shoestring.space.space import Choice

if TYPE_CHECKING:
    from shoestring.policies.placement.cheapest import Cheapest
    from shoestring.policies.placement.cheapest_step import CheapestStep
    from shoestring.policies.placement.on_demand import OnDemand
    from shoestring.policies.placement.pinning import Pinning
    from shoestring.policies.placement.slack.policy import Slack
    from shoestring.policies.placement.spottune.as_printed import AsPrinted
    from shoestring.policies.placement.spottune.rotation import Rotation

_HERE = "shoestring.policies.placement"
_PLAIN: LazyTable[type[Cheapest | OnDemand | Slack]] = LazyTable(
    {
        "cheapest": f"{_HERE}.cheapest:Cheapest",
        "on_demand": f"{_HERE}.on_demand:OnDemand",
        "slack": f"{_HERE}.slack.policy:Slack",
        "greedy": f"{_HERE}.slack.policy:Greedy",
        "uniform_progress": f"{_HERE}.slack.policy:UniformProgress",
    }
)
_WITH_RISK: LazyTable[type[CheapestStep]] = LazyTable(
    {
        "cheapest_step": f"{_HERE}.cheapest_step:CheapestStep",
        "refund_seeking": f"{_HERE}.spottune.refund_seeking:RefundSeeking",
    }
)
"""Those that weigh the risk of a revocation (option `revocations`)."""
_AS_PRINTED: LazyTable[type[AsPrinted]] = LazyTable({"spottune_as_printed": f"{_HERE}.spottune.as_printed:AsPrinted"})
PLACEMENTS = (*_PLAIN, *_WITH_RISK, *_AS_PRINTED)
"""Values of the option `placement`."""

LEAST_STAY_S = 900.0
"""With less, most of the time on a machine would be start-up and saving."""
_NO_ROTATION = {
    "on_demand": "on-demand machines are never preempted, so leaving one gains nothing",
    "greedy": "greedy keeps a machine until it is lost",
    "uniform_progress": "uniform_progress keeps a machine until it is lost",
    "slack": "this placement decides by itself when to move",
    "refund_seeking": "refund_seeking leaves every machine within its first hour anyway",
    "spottune_as_printed": "spottune_as_printed leaves every machine after an hour anyway",
}


def placement_policies(placement: str, options: Options, *, elastic: bool, widths: bool) -> tuple[Policy, ...]:
    """The placement with its options; a rotation comes before it, so that it finds the machine released.

    `widths`: trials use several machines, or share one, so no trial has a machine of its own to leave.
    """
    rotation = _rotation(placement, options, widths=widths)
    if placement in _AS_PRINTED:
        if widths:
            raise SpecError(
                f"options.placement={placement!r} gives each trial a machine of its own, "
                f"but trials of recipe {options.spec.recipe} use several",
                hint="use placement='refund_seeking', which seeks the same refunds",
            )
        as_printed = _AS_PRINTED[placement]
        return (as_printed(risk=chosen_risk(options, as_printed.risk)),)
    if placement in _WITH_RISK:
        weighing = _WITH_RISK[placement]
        idle_s = 0.0 if elastic else weighing.idle_s
        return (*rotation, weighing(risk=chosen_risk(options, weighing.risk), idle_s=idle_s, consolidates=elastic))
    if options.is_given("revocations"):
        raise SpecError(
            f"options.revocations={options.spec.options['revocations']!r}: this placement uses no revocation model",
            hint="use placement='cheapest_step' or 'refund_seeking'",
        )
    plain = _PLAIN[placement]
    return (*rotation, plain(idle_s=0.0 if elastic else plain.idle_s, consolidates=elastic))


def pinning(spec: RunSpec, *, only_on_demand: bool = False) -> tuple[Pinning, ...]:
    """Before the placement, if the space contains machines: trials run on those their configurations name."""
    roles = spec.space.roles
    if not roles:
        return ()
    if "count" in roles and spec.code.launch == "once":
        raise SpecError(
            f"launch='once' needs machines that are rented together for one job, and those that space.{roles['count']} "
            "counts are taken one by one",
            hint="use recipe='scispot' with options.gangs, e.g. gangs: 2",
        )
    from shoestring.policies.placement.pinning import Pinning

    spot = spec.space.params.get(roles.get("spot", ""))
    if only_on_demand and isinstance(spot, Choice) and True in spot.options:
        raise SpecError(
            f"options.placement='on_demand' rents no spot machines, and space.{roles['spot']} names some",
            hint="leave placement out: the space decides",
        )
    return (Pinning(only_on_demand),)


def _rotation(placement: str, options: Options, *, widths: bool) -> tuple[Rotation, ...]:
    if not options.is_given("rotate"):
        return ()
    why_not = _NO_ROTATION.get(placement)
    if widths:
        why_not = f"trials of recipe {options.spec.recipe} share machines or use several"
    if why_not:
        raise SpecError(
            f"options.rotate={options.spec.options['rotate']!r} makes no sense here: {why_not}",
            hint="leave it out, or use placement='cheapest_step' with a recipe of single trials",
        )
    from shoestring.policies.placement.spottune.rotation import HOUR_S, Rotation, Stay

    longest_s = options.seconds("rotate", HOUR_S)
    if longest_s < LEAST_STAY_S:
        raise SpecError(
            f"options.rotate={options.spec.options['rotate']!r} is too short for a machine to start and train",
            hint='it must be at least 15 minutes, e.g. "1h"',
        )
    return (Rotation(Stay.of(longest_s)),)
