"""SpotTune: train part of the way on the cheapest steps to be had, predict, and take the best to the end.

It reads like the paper's Figure 3: the search looks at curves (`theta`), the placement at prices, speeds, revocations
and refunds (`refund_seeking`), and a notice saves what was done (`on_notice`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.recipes.classic import bundle
from shoestring.recipes.options.parse import Options
from shoestring.recipes.theta import part_of_the_way


def spottune(spec: RunSpec) -> Sequence[Policy]:
    """As theta, on machines whose steps cost least: after refunds, price, speed and risk weighed (theta, mcnt)."""
    options = Options(spec)
    search = part_of_the_way(spec, options)
    return bundle(search, options, placement="refund_seeking", checkpointing="on_notice")


def spottune_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """SpotTune to the letter of its paper, for comparison: random bids, hourly moves, EarlyCurve (theta, mcnt)."""
    words = {"curve": "earlycurve", **spec.options}
    options = Options(msgspec.structs.replace(spec, options=words))
    search = part_of_the_way(spec, options)
    return bundle(search, options, placement="as_printed", checkpointing="on_notice")
