"""The actor that hosts a worker: on its node it starts the supervisor of a segment, and waits for it.

The supervisor does all the work, as on the other backends. The actor places it on the right node, reserves its CPUs and
GPUs in Ray, and shows others whether it still runs: it ends when the supervisor does, with or without a driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shoestring.errors import need
from shoestring.host.process import WorkerProcess
from shoestring.worker.containment import SEGMENT
from shoestring.worker.task import LOG

_THREADS = "OMP_NUM_THREADS"


class SegmentHost:
    """Made an actor by `driver`; two threads, so that it can be ended while it waits."""

    def __init__(self) -> None:
        self._worker: subprocess.Popen[bytes] | None = None
        self._folder = Path()

    def run(self, folder: str, threads: str | None) -> None:
        """Run the segment in this folder, once: a second call, by a restarted controller, does nothing. Nor does a
        second supervisor of the segment.

        `threads` is OMP_NUM_THREADS of the controller. Ray sets its own, from the CPUs an actor requests, but slots
        are not CPUs, and a trial should run here as it does on other backends.
        """
        if self._worker is not None:
            return
        environment = {name: value for name, value in os.environ.items() if name != _THREADS}
        if threads is not None:
            environment[_THREADS] = threads
        environment[SEGMENT] = folder
        self._folder = Path(folder)
        with (Path(folder) / LOG).open("ab") as log:
            self._worker = subprocess.Popen(
                [sys.executable, "-P", "-m", "shoestring.worker", folder],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                process_group=0,  # its own group, but in the session of the node, and ended with it
            )
        self._worker.wait()
        need("ray.actor", extra="ray").exit_actor()

    def end(self) -> None:
        """Kill the supervisor and everything it started."""
        if self._worker is not None and self._worker.poll() is None:
            WorkerProcess(self._folder, self._worker).kill()
