"""Background tasks: slow computations in a subprocess, so that the controller can react to notices, or in this process.

The subprocess is our own child and exchanges JSON lines: nothing is pickled, and the user's script is not imported
again, as a process pool would do. It ends when the controller does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from shoestring.kernel.background import run_task
from shoestring.kernel.decisions import Think


class TaskResult(NamedTuple):
    name: str
    answer: Any = None
    error: str = ""


class BackgroundTasks(Protocol):
    def submit(self, think: Think) -> None: ...

    def ready(self) -> list[TaskResult]:
        """The results since the last call."""
        ...

    def close(self) -> None: ...


class InProcessTasks:
    """One after the other, in this process, when `ready` is called: a debugger can step into them."""

    def __init__(self) -> None:
        self._waiting: deque[Think] = deque()

    def submit(self, think: Think) -> None:
        self._waiting.append(think)

    def ready(self) -> list[TaskResult]:
        return [_run(self._waiting.popleft())] if self._waiting else []

    def close(self) -> None:
        self._waiting.clear()


class SubprocessTasks:
    """One subprocess, started with the first task; it runs one task at a time, the others wait here."""

    def __init__(self) -> None:
        self._waiting: deque[Think] = deque()
        self._under_way: Think | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def submit(self, think: Think) -> None:
        self._waiting.append(think)
        self._next()

    def ready(self) -> list[TaskResult]:
        if self._under_way is None:
            return []
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            chunk = os.read(self._process.stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return []
        self._buffer += chunk
        if chunk and not self._buffer.endswith(b"\n"):
            return []
        result = TaskResult(self._under_way.name, error=f"{self._under_way.question}: the background process died")
        if chunk:
            line = json.loads(self._buffer)
            result = TaskResult(self._under_way.name, line.get("answer"), line.get("error", ""))
        else:
            self.close()
        self._buffer, self._under_way = b"", None
        self._next()
        return [result]

    def _next(self) -> None:
        if self._under_way is not None or not self._waiting:
            return
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "shoestring.world.live.background"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
                start_new_session=True,  # Ctrl-C is the controller's to handle
            )
            assert self._process.stdout is not None
            os.set_blocking(self._process.stdout.fileno(), False)
        self._under_way = think = self._waiting.popleft()
        assert self._process.stdin is not None
        line = json.dumps({"name": think.name, "question": think.question, "given": think.given})
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died; the next `ready` finds out

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with suppress(BrokenPipeError):  # a task it died before reading
                        stream.close()
            self._process = None


def _run(think: Think) -> TaskResult:
    try:
        return TaskResult(think.name, run_task(think.question, think.given))
    except Exception as error:
        return TaskResult(think.name, error=f"{think.question}: {type(error).__name__}: {error}")


def main() -> None:
    """Run tasks until the controller closes the pipe."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not mix with the results
    for line in sys.stdin:
        task = json.loads(line)
        result = _run(Think(name=task["name"], question=task["question"], given=task["given"], why="requested"))
        out.write(json.dumps({"error": result.error} if result.error else {"answer": result.answer}) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
