"""Failures: each used up one of a trial's `max_failures`, also where the user's code is not to blame."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.kernel.state import RunState


def failure_warnings(state: RunState) -> Iterator[str]:
    """A sentence with the number of failures and the reason of the latest."""
    failed = [job for job in state.jobs.values() if job.failures]
    if not failed:
        return
    count = sum(job.failures for job in failed)
    last = failed[-1]
    reason = f": {last.detail}" if last.detail else ""
    limit = state.the_spec.max_failures
    yield (
        f"{count} failure{'' if count == 1 else 's'} in {len(failed)} trial{'' if len(failed) == 1 else 's'} "
        f"(a trial may have {limit}, max_failures), trial {last.number}{reason}"
    )
