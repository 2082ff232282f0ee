"""A study on this machine: asha, with a checkpoint at every step."""

import time

import shoestring as ss


def train(trial):
    trained = int((trial.checkpoint / "trained").read_text()) if trial.checkpoint else 0
    for step in trial.steps():
        time.sleep(0.1)
        trained += 1
        trial.report(loss=abs(trial["x"] - 0.3) + 1 / step)
        with trial.save() as folder:
            if folder:
                (folder / "trained").write_text(str(trained))


ss.tune(
    train,
    space={"x": ss.uniform(0, 1), "kind": ss.choice("a", "b")},
    minimize="loss",
    max_steps=9,
    trials=9,
    recipe="asha",
    seed=7,
    deadline="36500d",
    options={"checkpointing": "periodic", "every_s": 0.2},
)
