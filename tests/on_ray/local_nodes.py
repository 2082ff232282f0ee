"""A launcher of Ray nodes on this machine: `local_nodes.py launch|end FOLDER`.

A node has a folder of its name, in which a keeper runs at most once; `end` kills it with its whole process tree. Calls
are noted in `calls`. Files in the folder change what it does: `fails` and `idle` launch nothing, `waits` holds it up.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from shoestring.backends.ray.keeper import Keep
from shoestring.backends.ray.kept_process import RAY_START, KeptProcess


def main(what, folder):
    name = os.environ["SHOESTRING_NODE"]
    note(folder, f"{what} {name}")
    process = KeptProcess(folder / name)
    if what == "end":
        process.end()
    elif (folder / "fails").exists():
        sys.exit("there are no such machines today")
    elif not (folder / "idle").exists():
        launch(process, folder / name)
        while (folder / "waits").exists():
            time.sleep(0.05)
    note(folder, f"{what}-done {name}")


def note(folder, line):
    with (folder / "calls").open("a") as file:
        file.write(f"{line} {time.time()}\n")


def launch(process, folder):
    if not process.never_started:
        return
    scratch = tempfile.mkdtemp(prefix="test-ray-")
    process.start(
        Keep(
            command=(
                *RAY_START,
                "--num-cpus=2",
                "--num-gpus=0",
                "--object-store-memory=80000000",
                "--include-log-monitor=false",
                "--node-ip-address=127.0.0.4",
                f"--temp-dir={scratch}",
                f"--address={os.environ['SHOESTRING_ADDRESS']}",
                f"--resources={os.environ['SHOESTRING_RESOURCES']}",
            ),
            heartbeat=str(folder / "no-heartbeat"),
            silence_s=900,
            scratch=scratch,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
