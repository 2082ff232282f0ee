"""Why a run ended, from the sentence that journals of version 0.1 recorded in the place of a reason code.

The only place that reads sentences. They are those of one release, so this list is complete and never grows.
"""

from __future__ import annotations

import re

from shoestring.kernel.types import EndReason

_SENTENCES: tuple[tuple[str, EndReason], ...] = (
    (r"the deadline is near$", "deadline_reached"),
    (r"no machine can be paid any more: only .+ left before the deadline$", "deadline_reached"),
    (r"no machine can be paid any more: ", "out_of_budget"),
    (r".+ does not pay .+ any more$", "out_of_budget"),
    (r"no spot machine on offer has the \d+ slots", "failed"),
    (r"every machine on offer is a spot machine", "failed"),
    (r".*\bbudget\b", "out_of_budget"),
    (r".*\bdeadline\b", "deadline_reached"),
)
"""The last two: what a plan that no longer fits an amended budget or deadline said."""


def reason_of(sentence: str) -> EndReason:
    """All other sentences (nothing left to do, the last stage is over) are those of runs that did all they were to
    do."""
    return next((reason for pattern, reason in _SENTENCES if re.match(pattern, sentence)), "completed")
