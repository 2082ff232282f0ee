"""Processes that begin with the package loaded: each is a copy of one that has loaded it, and does nothing else.

Loading is most of what a short command costs, and there are many in the documentation. A copy is a process like any
other, with arguments, a folder, an environment and an exit code of its own.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn, TypedDict

LONGEST_S = 1800
"""No command takes a minute. On a computer with much else to do one may: only what hangs is ended."""


class Order(TypedDict):
    words: list[str]
    folder: str
    environment: dict[str, str]
    printed: str
    """The file for what it prints."""


class Warm:
    """Runs `shoestring ...` and `python FILE ...`, one at a time."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, words: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
        """The exit code, and what was printed."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.NamedTemporaryFile() as printed:
            order = Order(words=words, folder=str(folder), environment=dict(environment), printed=printed.name)
            self._server.stdin.write(json.dumps(order) + "\n")
            self._server.stdin.flush()
            return int(self._server.stdout.readline()), printed.read().decode()

    def close(self) -> None:
        self._server.communicate()


def _orders() -> Order | None:
    """Copies this process for every order. Returns in each copy with its order, and here when there are no more."""
    for line in sys.stdin:
        order: Order = json.loads(line)
        copy = os.fork()
        if copy == 0:
            return order
        print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]), flush=True)
    return None


def _become(order: Order) -> None:
    """What a new process would have found, and then what it would have done."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    nothing, printed = os.open(os.devnull, os.O_RDONLY), os.open(order["printed"], os.O_WRONLY | os.O_APPEND)
    for descriptor, source in enumerate((nothing, printed, printed)):
        os.dup2(source, descriptor)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 - until the process ends
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.path.insert(0, order["folder"])
    signal.alarm(LONGEST_S)
    program, *sys.argv = order["words"] if order["words"][0] == "python" else ["", *order["words"]]
    if program == "python":
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        main()


def _end(become: Callable[[], None]) -> NoReturn:
    """As a process ends, but for taking apart all that was loaded: that takes longer than most commands."""
    code: object = 0
    try:
        become()
    except SystemExit as ending:
        code = ending.code
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0) & 0xFF)


if __name__ == "__main__":
    import scipy.optimize
    import scipy.stats  # noqa: F401

    import shoestring.api
    import shoestring.specs.machines  # noqa: F401
    from shoestring.cli import main
    from shoestring.cli.main import COMMANDS, cli

    for name in COMMANDS:
        cli.get_command(None, name)  # type: ignore[arg-type]
    gc.collect()
    gc.freeze()  # or a copy would look through all of it, and so have pages of its own
    received = _orders()
    if received is not None:
        _end(partial(_become, received))
