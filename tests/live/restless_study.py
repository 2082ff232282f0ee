"""A study on real processes under a market that preempts machines: `python restless_study.py STORE STEP_S STEPS`.

Its last trial does not end before there is a file STORE/may_end: however fast the computer, there is time to kill.
"""

import sys
import time
from pathlib import Path

import shoestring as ss

STORE, STEP_S, STEPS, TRIALS = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), 8


def train(trial):
    trained = int((trial.checkpoint / "trained").read_text()) if trial.checkpoint else 0
    for step in trial.steps():
        time.sleep(trial["step_s"])
        while step == trial["steps"] and trial.number == TRIALS - 1 and not Path(trial["may_end"]).exists():
            time.sleep(0.05)
        trained += 1
        if trained != step:
            raise RuntimeError(f"step {step} after {trained - 1} trained: a checkpoint and its step do not agree")
        trial.report(loss=abs(trial["x"] - 0.3) + 1 / step)
        with trial.save() as folder:
            if folder:
                (folder / "trained").write_text(str(trained))


ss.tune(
    train,
    space={"x": ss.uniform(0, 1), "step_s": STEP_S, "steps": STEPS, "may_end": f"{STORE}/may_end"},
    minimize="loss",
    max_steps=STEPS,
    max_machines=3,
    recipe="random",
    trials=TRIALS,
    budget="$100",
    deadline="90d",
    seed=7,
    name="restless",
    store=STORE,
    market={"kind": "modern", "interruptions_per_hour": 2.0, "speedup": 500, "seed": 3},
    options={"checkpointing": "periodic"},
)
