"""The breaker: renting stops after several rounds of machines that were given back before user code ran on them.

One such machine is bad luck: it took long to start, or the search pruned its trial meanwhile. Rounds of them in a row,
while trials wait, have a cause that more machines do not remove, and each is charged for. Machines that the market
denies or preempts are not counted: those offers rest for a while (`renting.facts`).
"""

from __future__ import annotations

from shoestring.kernel.view import RunView
from shoestring.models.speed.latencies import learned_latencies
from shoestring.units import show_duration

MOST_ROUNDS = 5


def renting_stopped(state: RunView) -> bool:
    return state.given_back.rounds >= MOST_ROUNDS


def why_stopped(state: RunView) -> str:
    """Names what usually is the cause, with its values."""
    slice_s, wind_down_s = show_duration(state.spec.slice_s), show_duration(state.spec.wind_down_s)
    start_s = show_duration(learned_latencies(state).provision_s)
    return (
        f"renting has stopped: the last {state.given_back.machines} machines were given back before a trial could run "
        f"on them (slice_s is {slice_s}, wind_down_s {wind_down_s}, and a machine takes {start_s} to start)"
    )
