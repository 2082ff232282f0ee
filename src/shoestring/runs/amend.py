"""The same command again: is it the same run, and what may have changed since?

Pure. Budget and deadline may change at any time, as long as what is already spent or committed still fits; a change of
any other field makes it another run.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from shoestring.errors import SpecError
from shoestring.kernel.events import UserAsked
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.recipes.options.parse import with_current_values
from shoestring.units import show_duration, show_usd

AMENDABLE = frozenset({"budget_usd", "deadline_s", "wind_down_s", "slice_s", "job_takes_s"})
"""`wind_down_s` and `slice_s` may follow from the deadline, so they change with it. `job_takes_s` is an estimate, and
does not change what is run: that of the start is kept."""


def check_same(old: RunSpec, new: RunSpec) -> None:
    """Refuse to resume a run whose spec has changed."""
    changed = [
        f"{_NAMES.get(field, field)} (was {_shown(field, old)}, now {_shown(field, new)})"
        for field in RunSpec.__struct_fields__
        if field not in AMENDABLE and not _equal(field, old, new)
    ]
    if changed:
        raise SpecError(
            f"there is another run named {old.name!r}, which differs in {'; '.join(changed)}",
            hint="give this one another name (name= or --name), or move the old one aside and start afresh (--fresh)",
        )


def amendment(state: RunState, new: RunSpec, now: float) -> list[UserAsked]:
    """The request to change budget or deadline, if they changed; SpecError if what is committed no longer fits."""
    old = state.the_spec
    if old.budget_usd == new.budget_usd and old.deadline_s == new.deadline_s:
        return []
    committed = state.spent_usd + state.reserved_usd
    if new.budget_usd < old.budget_usd and new.budget_usd < committed:
        raise SpecError(
            f"budget {show_usd(new.budget_usd)} is less than what is spent ({show_usd(state.spent_usd)}) "
            f"and committed to machines that run ({show_usd(state.reserved_usd)})",
            hint=f"the least possible now is {show_usd(math.ceil(committed * 100) / 100)}",
        )
    over_by = max([now, *(lease.end_by for lease in state.leases.values())]) - state.started_at
    if new.deadline_s < old.deadline_s and new.deadline_s < over_by:
        raise SpecError(
            f"deadline {show_duration(new.deadline_s)} has passed, or comes before machines that are paid for end: "
            f"the run is {show_duration(over_by)} along",
            hint="deadlines count from the start of the run; give a later one",
        )
    return [UserAsked(at=now, wish="amend", budget_usd=new.budget_usd, deadline_s=new.deadline_s)]


def _equal(field: str, old: RunSpec, new: RunSpec) -> bool:
    if field in ("listings", "max_machines") and _is_free(old) and _is_free(new):
        return True  # free machines, however many there are today
    if field == "open_ended":  # a bag of version 0.1 did not record whether its max_steps of 1 was given
        return old.max_steps != new.max_steps or bool(old.open_ended) <= bool(new.open_ended)
    if field == "options":
        return with_current_values(old.options) == with_current_values(new.options)
    return bool(getattr(old, field) == getattr(new, field))


_NAMES = {"open_ended": "max_steps"}
"""Fields that the user gives under another name."""


def _shown(field: str, spec: RunSpec) -> str:
    if field in ("open_ended", "max_steps") and spec.open_ended:
        return "not given"
    return _short(spec.max_steps if field == "open_ended" else getattr(spec, field))


def _is_free(spec: RunSpec) -> bool:
    return all(listing.billing == "free" for listing in spec.listings)


def _short(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > 3:
        return f"{len(value)} of them"
    text = repr(msgspec.to_builtins(value)) if isinstance(value, msgspec.Struct) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
