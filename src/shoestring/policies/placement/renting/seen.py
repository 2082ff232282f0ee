"""What machines and starts were seen to take in this run: from asking to having, from the order to the first step."""

from __future__ import annotations

from shoestring.kernel.view import RunView

USUAL_PROVISION_S = 90.0
"""How long a machine takes to come up, until one has been seen to."""
USUAL_START_S = 20.0
"""From the order to start a trial until its code runs, likewise."""


def provision_s(state: RunView) -> float:
    seen = [x.granted_at - x.requested_at for x in state.leases.values() if x.granted_at is not None]
    return sum(seen) / len(seen) if seen else min(USUAL_PROVISION_S, state.spec.deadline_s / 10)


def start_s(state: RunView) -> float:
    seen = [x.running_since - x.started_at for x in state.segments.values() if x.running_since is not None]
    return sum(seen) / len(seen) if seen else USUAL_START_S
