"""The controller process of one run of the service: `python -m shoestring.server.driver FOLDER [--end]`.

A separate process, for three reasons: a run that crashes or exhausts the memory affects no other; signals, which pause
runs, reach main threads only; and runs survive a service that is killed. The next service adopts them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shoestring.cli.main import INTERRUPTED, explain_error
from shoestring.runs.cli_context import CliContext
from shoestring.runs.folder import RunFolder


def main(folder: str, ending: bool) -> int:
    from shoestring.server.submissions import drive, read_submission

    place = RunFolder(Path(folder))
    submission = read_submission(place)
    mode = "run" if submission is None else submission.mode
    try:
        drive(place, ending=ending, context=CliContext(mode=mode, say=lambda text: print(text, file=sys.stderr)))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return explain_error(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--end" in sys.argv[2:]))
