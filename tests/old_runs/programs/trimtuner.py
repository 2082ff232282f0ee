"""Hyper-parameters on parts of the data, chosen by a model beside the controller, under a limit."""

import time

import shoestring as ss


def train(trial):
    for step in trial.steps():
        time.sleep(0.05)
        trial.report(loss=abs(trial["x"] - 0.3) + 0.2 / trial.fraction**0.5 + 1 / step)


ss.tune(
    train,
    space={"x": ss.uniform(0, 1)},
    minimize="loss",
    max_steps=4,
    trials=8,
    fractions=[0.1, 0.5, 1.0],
    constraints=["time <= 10m"],
    recipe="trimtuner",
    seed=7,
    deadline="36500d",
)
