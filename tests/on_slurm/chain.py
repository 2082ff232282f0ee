"""A command whose result is right only if every step was done once, in order: `chain.py SEED STEPS STEP_S`.

It knows nothing of Shoestring but two folders in its environment and the lines it prints.
"""

import json
import os
import sys
import time
from pathlib import Path


def link(value: int, step: int) -> int:
    return (31 * value + step) % 1_000_003


def expected(seed: int, steps: int) -> int:
    value = seed
    for step in range(1, steps + 1):
        value = link(value, step)
    return value


def main() -> None:
    seed, steps, step_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    done, value = 0, seed
    if saved := os.environ["SHOESTRING_CHECKPOINT"]:
        done, value = json.loads((Path(saved) / "state").read_text())
    for step in range(done + 1, steps + 1):
        time.sleep(step_s)
        value = link(value, step)
        if os.environ.get("RANK", "0") != "0":
            continue  # only the first of a gang reports and saves
        folder = Path(os.environ["SHOESTRING_SAVE_TO"]) / f"at-{step}"
        folder.mkdir()
        (folder / "state").write_text(json.dumps([step, value]))
        print(json.dumps({"step": step, "value": value}), flush=True)
        print(json.dumps({"saved": folder.name, "step": step}), flush=True)


if __name__ == "__main__":
    main()
