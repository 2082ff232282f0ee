"""An MPI program that sums over its ranks at every step, and saves after each. It continues from what was saved, and
leaves when asked to.

Its result is right only if every step was done once, by all ranks: see `expected`.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def expected(steps, ranks):
    return sum(step * ranks * (ranks + 1) // 2 for step in range(1, steps + 1))


def main():
    from mpi4py import MPI

    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    world = MPI.COMM_WORLD
    steps, step_s = int(sys.argv[1]), float(sys.argv[2])
    saved = os.environ["SHOESTRING_CHECKPOINT"]
    first, total = json.loads((Path(saved) / "state.json").read_text()) if saved else (0, 0)
    ranks = world.gather(f"rank {world.rank} of {world.size} from step {first}\n")
    if world.rank == 0:  # lines that several ranks print at once may be mixed up
        print("".join(ranks), end="", flush=True)
    for step in range(first + 1, steps + 1):
        time.sleep(step_s)
        total += world.allreduce((world.rank + 1) * step)
        if world.rank == 0:
            folder = Path(os.environ["SHOESTRING_SAVE_TO"]) / f"at-{step}"
            folder.mkdir()
            (folder / "state.json").write_text(json.dumps([step, total]))
            print(json.dumps({"step": step, "total": total}), flush=True)
            print(json.dumps({"saved": folder.name, "step": step}), flush=True)
        if world.allreduce(len(asked)):
            time.sleep(1.0)  # some get the signal a moment later
            leaving = world.allreduce(min(1, len(asked)))
            if world.rank == 0:
                print(f"{leaving} ranks were asked to leave", flush=True)
            return


if __name__ == "__main__":
    main()
