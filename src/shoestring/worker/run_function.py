"""Running a training function until it ends, and its outcome. The same for a worker process and for `inline`."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable
from typing import NamedTuple

from shoestring.kernel.types import SegmentCause
from shoestring.trial import Trial
from shoestring.worker.loading import TrainFunction, describe


class FunctionOutcome(NamedTuple):
    cause: SegmentCause
    step: int
    detail: str = ""


def run_function(
    function: TrainFunction,
    trial: Trial,
    metric: str | None,
    *,
    until_exit: bool = False,
    log: Callable[[str], object],
    passes_through: Callable[[Exception], bool] = lambda _: False,
) -> FunctionOutcome:
    """Call the user's function; an exception is its outcome and is not raised, unless it `passes_through`.

    `until_exit`: it is done when it returns, and not before, whatever its steps."""
    began_at = trial.step
    try:
        function(trial)
    except SystemExit as error:
        trial.close()
        if error.code:
            return FunctionOutcome("failed", trial.step, f"called exit({error.code!r})")
    except Exception as error:
        if passes_through(error):
            raise
        log(traceback.format_exc())
        trial.close()
        return FunctionOutcome("failed", trial.step, describe(error))
    trial.close()
    if trial.left:
        return FunctionOutcome("halted", trial.step)
    missing = never_reported(metric, trial.metric_names, f"call trial.report({_argument(metric)}) after each step")
    if missing and (began_at == 0 or trial.step > began_at):
        return FunctionOutcome("failed", trial.step, missing)
    target = None if until_exit else trial.until_step
    return FunctionOutcome("completed" if target is None or trial.step < target else "reached", trial.step)


def never_reported(metric: str | None, names: set[str], hint: str) -> str:
    """The error sentence for code that ended without reporting the study's metric; "" if it did report it."""
    if metric is None or metric in names:
        return ""
    return f"never reported {metric!r}; reported: {', '.join(sorted(names)) or 'nothing'} ({hint})"


def _argument(metric: str | None) -> str:
    name = metric or ""
    return f"{name}=..." if name.isidentifier() else f"**{{{name!r}: ...}}"


def died_of(number: int) -> str:
    """The signal that ended a process, for people."""
    name = signal.Signals(number).name if number in signal.Signals._value2member_map_ else f"signal {number}"
    return f"killed by {name}" + (" (out of memory?)" if number == signal.SIGKILL else "")
