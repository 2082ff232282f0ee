"""SpotTune: train part of the way where steps are cheapest, predict final values, and train only the best to max_steps.

It follows the paper's Figure 3: the search uses curves (`theta`), the placement prices, speeds, revocations and refunds
(`refund_seeking`), and a preemption notice triggers a checkpoint (`on_notice`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.recipes.classic import bundle
from shoestring.recipes.options.parse import Options
from shoestring.recipes.theta import theta_search


def spottune(spec: RunSpec) -> Sequence[Policy]:
    """As theta, on the machines with the cheapest expected step: price, speed, risk and refunds (theta, mcnt)."""
    options = Options(spec)
    search = theta_search(spec, options)
    return bundle(search, options, placement="refund_seeking", checkpointing="on_notice")


def spottune_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """SpotTune exactly as its paper prints it, for comparison: random bids, hourly moves, EarlyCurve (theta, mcnt)."""
    words = {"curve": "earlycurve", **spec.options}
    options = Options(msgspec.structs.replace(spec, options=words))
    search = theta_search(spec, options)
    return bundle(search, options, placement="spottune_as_printed", checkpointing="on_notice")
