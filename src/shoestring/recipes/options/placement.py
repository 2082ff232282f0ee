"""The options of placements: the revocation model, and whether trials leave their machines after some time."""

from __future__ import annotations

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.cheapest_step import CheapestStep
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.placement.pinning import Pinning
from shoestring.policies.placement.scispot.policy import SciSpot
from shoestring.policies.placement.slack.policy import Greedy, Slack, UniformProgress
from shoestring.policies.placement.spottune.as_printed import AsPrinted
from shoestring.policies.placement.spottune.refund_seeking import RefundSeeking
from shoestring.policies.placement.spottune.rotation import HOUR_S, Rotation, Stay
from shoestring.recipes.options.model_files import chosen_risk
from shoestring.recipes.options.parse import Options
from shoestring.space.space import Choice

Placement = Cheapest | OnDemand | Slack | AsPrinted

LEAST_STAY_S = 900.0
"""With less, most of the time on a machine would be start-up and saving."""
_NO_ROTATION: dict[type[Placement], str] = {
    OnDemand: "on-demand machines are never preempted, so leaving one gains nothing",
    Greedy: "greedy keeps a machine until it is lost",
    UniformProgress: "uniform_progress keeps a machine until it is lost",
    Slack: "this placement decides by itself when to move",
    RefundSeeking: "refund_seeking leaves every machine within its first hour anyway",
    AsPrinted: "spottune_as_printed leaves every machine after an hour anyway",
}
"""The first match counts: a subclass before its bases."""


def placement_policies(kind: type[Placement], options: Options, *, elastic: bool, widths: bool) -> tuple[Policy, ...]:
    """The placement with its options; a rotation comes before it, so that it finds the machine released.

    `widths`: trials use several machines, or share one, so no trial has a machine of its own to leave.
    """
    rotation = _rotation(kind, options, widths=widths)
    if issubclass(kind, AsPrinted):
        if widths:
            raise SpecError(
                "options.placement='spottune_as_printed' gives each trial a machine of its own, "
                f"but trials of recipe {options.spec.recipe} use several",
                hint="use placement='refund_seeking', which seeks the same refunds",
            )
        return (AsPrinted(risk=chosen_risk(options, AsPrinted.risk)),)
    idle_s = 0.0 if elastic else kind.idle_s
    if issubclass(kind, CheapestStep):
        return (*rotation, kind(risk=chosen_risk(options, kind.risk), idle_s=idle_s, consolidates=elastic))
    if options.is_given("revocations"):
        raise SpecError(
            f"options.revocations={options.spec.options['revocations']!r}: this placement uses no revocation model",
            hint="use placement='cheapest_step', 'refund_seeking' or 'spottune_as_printed'",
        )
    return (*rotation, kind(idle_s=idle_s, consolidates=elastic))


def pinning(spec: RunSpec, kind: type[Placement | SciSpot]) -> tuple[Pinning, ...]:
    """Before the placement, if the space contains machines: trials run on those their configurations name."""
    roles = spec.space.roles
    if not roles:
        return ()
    only_on_demand = issubclass(kind, OnDemand)
    spot = spec.space.params.get(roles.get("spot", ""))
    if only_on_demand and isinstance(spot, Choice) and True in spot.options:
        raise SpecError(
            f"options.placement='on_demand' rents no spot machines, and space.{roles['spot']} names some",
            hint="leave placement out: the space decides",
        )
    return (Pinning(only_on_demand),)


def _rotation(kind: type[Placement], options: Options, *, widths: bool) -> tuple[Rotation, ...]:
    if not options.is_given("rotate"):
        return ()
    why_not = next((why for known, why in _NO_ROTATION.items() if issubclass(kind, known)), None)
    if widths:
        why_not = f"trials of recipe {options.spec.recipe} share machines or use several"
    if why_not:
        raise SpecError(
            f"options.rotate={options.spec.options['rotate']!r} makes no sense here: {why_not}",
            hint="leave it out, or use placement='cheapest_step' with a recipe of single trials",
        )
    longest_s = options.seconds("rotate", HOUR_S)
    if longest_s < LEAST_STAY_S:
        raise SpecError(
            f"options.rotate={options.spec.options['rotate']!r} is too short for a machine to start and train",
            hint='it must be at least 15 minutes, e.g. "1h"',
        )
    return (Rotation(Stay.of(longest_s)),)
