"""What to say before a run starts: who plays the machines, and whether the market's clock is too fast for the code."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator

from shoestring.kernel.types import THIS_MACHINE
from shoestring.market.own import OwnMarket
from shoestring.runs.cli_context import CliContext
from shoestring.runs.own_table import own_table
from shoestring.specs.request import RunRequest
from shoestring.units import show_duration

LONG_START_S = 600.0
"""Market time. Starting a trial takes a real machine a minute or two."""


def remarks(request: RunRequest, context: CliContext) -> Iterator[str]:
    """Sentences for people, before anything is rented."""
    if request.market.kind == "free":
        return
    if isinstance(request.provider, OwnMarket):
        yield from own_table(request.provider)
    else:
        yield _played_by(request)
    if request.spec.code.function and context.loading_since is not None and not context.studies:
        yield from _slow_start(time.monotonic() - context.loading_since, request.market.speedup)


def _played_by(request: RunRequest) -> str:
    types = list(dict.fromkeys(listing.offer.machine for listing in request.spec.listings))
    others = f" and {len(types) - 1} other types" if len(types) > 2 else f" and {types[1]}" if len(types) == 2 else ""
    here = request.place.place.machine == THIS_MACHINE
    player = f"processes of this computer ({os.cpu_count()} cores)" if here else f"nodes of {request.place.name}"
    return (
        f"no cloud is rented from: {player} stand in for {types[0]}{others}, with the speed and the GPUs they have; "
        "prices, preemptions and the bill are simulated"
    )


def _slow_start(load_s: float, speedup: float) -> Iterator[str]:
    """The measured time is that of the file up to its call; a worker does the same before it trains."""
    if load_s * speedup > LONG_START_S:
        yield (
            f"warning: loading the study takes {show_duration(load_s)}, which is {show_duration(load_s * speedup)} of "
            f"market time at --speedup {speedup:g}, whenever a trial starts or resumes; "
            f"at --speedup {_rounded_down(LONG_START_S / load_s):g} it is at most {show_duration(LONG_START_S)}"
        )


def _rounded_down(value: float) -> float:
    """To one digit."""
    unit = 10.0 ** math.floor(math.log10(value))
    return math.floor(value / unit) * unit
