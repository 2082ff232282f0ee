"""A study under a market that preempts machines about every 30 seconds: run with `--on ray`, or on another place."""

import time

import shoestring as ss


def train(trial):
    trained = int((trial.checkpoint / "trained").read_text()) if trial.checkpoint else 0
    for step in trial.steps():
        time.sleep(trial["step_s"])
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
        space={"x": ss.uniform(0, 1), "step_s": 0.2},
        minimize="loss",
        max_steps=40,
        max_machines=3,
        recipe="random",
        trials=8,
        budget="$5",
        deadline="1d",
        seed=7,
        name="restless",
        market={"kind": "modern", "interruptions_per_hour": 2.0, "speedup": 60, "seed": 3},
        options={"checkpointing": "periodic"},
    )
