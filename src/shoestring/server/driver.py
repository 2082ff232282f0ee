"""The process beside the service that drives one run: `python -m shoestring.server.driver FOLDER [--end]`.

A process of its own, for three reasons: a run that crashes or eats the memory takes nobody along; signals, by which
runs are paused, reach main threads only; and a service that is killed leaves its runs going. The next one finds them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shoestring.cli.main import INTERRUPTED, explain_error
from shoestring.runs.cli_context import CliContext
from shoestring.runs.folder import RunFolder


def main(folder: str, ending: bool) -> int:
    from shoestring.server.submissions import drive, kept

    place = RunFolder(Path(folder))
    submission = kept(place)
    mode = "run" if submission is None else submission.mode
    try:
        drive(place, ending=ending, prompt=CliContext(mode=mode, say=lambda text: print(text, file=sys.stderr)))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return explain_error(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--end" in sys.argv[2:]))
