"""SpotTune on an auction, asking a trained model of revocations."""

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
    space={"x": ss.uniform(0, 1)},
    minimize="loss",
    max_steps=10,
    trials=6,
    budget="$20",
    deadline="10d",
    recipe="spottune",
    max_machines=2,
    seed=7,
    market={"kind": "auction", "machines": ["m3.medium", "r3.large"], "speedup": 600, "seed": 3},
    options={"revocations": "model.json"},
)
