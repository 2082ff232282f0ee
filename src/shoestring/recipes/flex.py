"""Our own elastic recipe: the default choice for a budget and a deadline."""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.flex.policy import Flex
from shoestring.recipes.classic import bundle, require_metric, uses_spot
from shoestring.recipes.options.parse import Options


def flex(spec: RunSpec) -> Sequence[Policy]:
    """A model of all curves proposes trials and gives the most promising more slots (explore, grace_steps)."""
    require_metric(spec)
    options = Options(spec)
    if spec.listings and not any(listing.slots >= spec.slots for listing in spec.listings):
        raise SpecError(
            f"no machine on offer has the {spec.slots} slots that one worker takes",
            hint="lower slots, or allow other machines",
        )
    search = Flex(
        grace_steps=options.whole("grace_steps", Flex.grace_steps, least=1),
        explore=options.share("explore", Flex.explore, least=0.05, most=0.95),
        startup=options.whole("startup", Flex.startup, least=1),
        spot=uses_spot(options),
    )
    return bundle(search, options, widths=True, placement="cheapest")
