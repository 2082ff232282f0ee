"""A study under a market that preempts machines about every 30 seconds: run with `--on ray`, or on another place.

Its last trial does not end before there is the file that $MAY_END names: also on a fast computer there is time to kill.
"""

import os
import time
from pathlib import Path

import shoestring as ss

STEPS, TRIALS = 40, 8


def train(trial):
    trained = int((trial.checkpoint / "trained").read_text()) if trial.checkpoint else 0
    for step in trial.steps():
        time.sleep(trial["step_s"])
        while step == STEPS and trial.number == TRIALS - 1 and not Path(trial["may_end"]).exists():
            time.sleep(0.05)
        trained += 1
        if trained != step:
            raise RuntimeError(f"step {step} after {trained - 1} trained: a checkpoint and its step do not agree")
        trial.report(loss=abs(trial["x"] - 0.3) + 1 / step)
        with trial.save() as folder:
            if folder:
                (folder / "trained").write_text(str(trained))


if __name__ == "__main__":
    ss.tune(
        train,
        space={"x": ss.uniform(0, 1), "step_s": 0.2, "may_end": os.environ["MAY_END"]},
        minimize="loss",
        max_steps=STEPS,
        max_machines=3,
        recipe="random",
        trials=TRIALS,
        budget="$5",
        deadline="1d",
        seed=7,
        name="restless",
        market={"kind": "modern", "interruptions_per_hour": 2.0, "speedup": 60, "seed": 3},
        options={"checkpointing": "periodic"},
    )
