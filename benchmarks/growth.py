"""One large inline study; prints the CPU per event of its last tenth over that of its first, and the peak memory in MB.

A helper of `benchmarks.overhead`, in a process of its own so that the memory is the study's alone.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time

import shoestring as ss
from shoestring import progress
from shoestring.kernel.events import Event
from shoestring.kernel.state import RunState


def train(trial: ss.Trial) -> None:
    x = trial["x"]
    for step in trial.steps():
        trial.report(loss=x * x + 1 / step)


def main(trials: int) -> None:
    marks: dict[int, tuple[float, int]] = {}
    tenth = trials // 10

    class Watch(progress.LiveLine):
        """Notes CPU and entries whenever another tenth of the trials is finished."""

        def __call__(self, state: RunState, event: Event) -> None:
            done = state.by_status["finished"]
            if done % tenth == 0 and done not in marks:
                marks[done] = (time.process_time(), state.seq)
            super().__call__(state, event)

    from shoestring import live_run

    live_run.LiveLine = Watch  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as store:
        ss.tune(
            train,
            space={"x": ss.uniform(-1, 1)},
            minimize="loss",
            max_steps=10,
            trials=trials,
            recipe="asha",
            on="inline",
            name="growth",
            store=store,
        )

    def per_event(start: int, end: int) -> float:
        (cpu_a, seq_a), (cpu_b, seq_b) = marks[start], marks[end]
        return (cpu_b - cpu_a) / (seq_b - seq_a)

    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(per_event(9 * tenth, 10 * tenth) / per_event(0, tenth), peak_mb)


if __name__ == "__main__":
    main(int(sys.argv[1]))
