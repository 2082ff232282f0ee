"""A training program without Shoestring's library. It prints its metrics as JSON lines, resumes from
$SHOESTRING_CHECKPOINT if that is set, writes checkpoints to $SHOESTRING_SAVE_TO and announces them in JSON lines too,
and on SIGTERM (a preemption, or a pause) saves and exits.

Run it alone with `python train.py --rate 0.1 --decay 0.9 --optimizer plain`: it works the same.
"""

import argparse
import json
import math
import os
import random
import signal
import time
from pathlib import Path

STEPS = 20
SAVE_EVERY = 5


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rate", type=float, required=True)
    options.add_argument("--decay", type=float, required=True)
    options.add_argument("--optimizer", choices=["plain", "momentum"], required=True)
    args = options.parse_args()
    stop_requested: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop_requested.append(number))
    state = load()
    last = int(os.environ.get("SHOESTRING_UNTIL_STEP", STEPS))
    for step in range(state["step"] + 1, last + 1):
        descend(state, args)
        state["step"] = step
        print(json.dumps({"step": step, "loss": loss(state["x"], state["y"])}), flush=True)
        if stop_requested or step == last or step % SAVE_EVERY == 0:
            save(state)
        if stop_requested:
            return


def loss(x: float, y: float) -> float:
    """Rosenbrock's valley: easy to enter, hard to follow to its end at (1, 1)."""
    return math.log1p((1 - x) ** 2 + 100 * (y - x * x) ** 2)


def descend(state: dict, args: argparse.Namespace) -> None:
    """A hundred noisy steps downhill."""
    rng = random.Random(state["step"])
    for _ in range(100):
        x, y = state["x"], state["y"]
        size = 1 + (1 - x) ** 2 + 100 * (y - x * x) ** 2
        slopes = {"x": (-2 * (1 - x) - 400 * x * (y - x * x)) / size, "y": 200 * (y - x * x) / size}
        rate = args.rate * args.decay ** state["step"]
        keep = 0.9 if args.optimizer == "momentum" else 0.0
        for name, slope in slopes.items():
            state[f"speed_{name}"] = keep * state[f"speed_{name}"] - rate * (slope + rng.gauss(0, 0.1)) / 10
            state[name] += state[f"speed_{name}"]
    time.sleep(0.02)


def load() -> dict:
    folder = os.environ.get("SHOESTRING_CHECKPOINT")
    if folder:
        return json.loads((Path(folder) / "state.json").read_text())
    return {"step": 0, "x": -1.0, "y": 1.5, "speed_x": 0.0, "speed_y": 0.0}


def save(state: dict) -> None:
    folder = os.environ.get("SHOESTRING_SAVE_TO")
    if folder:
        (Path(folder) / "state.json").write_text(json.dumps(state))
        print(json.dumps({"saved": "state.json", "step": state["step"]}), flush=True)


if __name__ == "__main__":
    main()
