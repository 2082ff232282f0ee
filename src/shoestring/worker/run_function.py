"""Running user code to its end and saying how it ended. The same for a worker process and for `inline`."""

from __future__ import annotations

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


def play_function(
    function: TrainFunction,
    trial: Trial,
    metric: str | None,
    *,
    log: Callable[[str], object],
    let_out: Callable[[Exception], bool] = lambda _: False,
) -> FunctionOutcome:
    """Call the user's function; what it raises is its ending, not ours, unless it is to be `let_out`."""
    began_at = trial.step
    try:
        function(trial)
    except SystemExit as error:
        trial.close()
        if error.code:
            return FunctionOutcome("failed", trial.step, f"called exit({error.code!r})")
    except Exception as error:
        if let_out(error):
            raise
        log(traceback.format_exc())
        trial.close()
        return FunctionOutcome("failed", trial.step, describe(error))
    trial.close()
    if trial.left:
        return FunctionOutcome("halted", trial.step)
    unheard = never_reported(metric, trial.metric_names)
    if unheard and (began_at == 0 or trial.step > began_at):
        return FunctionOutcome("failed", trial.step, unheard)
    return FunctionOutcome("reached" if trial.step >= trial.until_step else "completed", trial.step)


def never_reported(metric: str | None, names: set[str]) -> str:
    """What to say of code that ended without telling what the study is about; nothing if it did tell."""
    if metric is None or metric in names:
        return ""
    return f"never reported {metric!r}; reported: {', '.join(sorted(names)) or 'nothing'}"
