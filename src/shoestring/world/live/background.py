"""Where slow questions are answered: in a process beside the controller, which stays awake for notices, or right here.

The process is our own child, spoken to in JSON lines: nothing is pickled, and the user's script is not imported again,
as a process pool would do. It ends when the controller does.
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
    def ask(self, think: Think) -> None: ...

    def ready(self) -> list[TaskResult]:
        """What has been answered since the last look."""
        ...

    def close(self) -> None: ...


class InProcessTasks:
    """One after the other, in this process, when looked for: a debugger gets into them."""

    def __init__(self) -> None:
        self._asked: deque[Think] = deque()

    def ask(self, think: Think) -> None:
        self._asked.append(think)

    def ready(self) -> list[TaskResult]:
        return [_think(self._asked.popleft())] if self._asked else []

    def close(self) -> None:
        self._asked.clear()


class SubprocessTasks:
    """One process, started at the first question; one question at a time, the others wait here."""

    def __init__(self) -> None:
        self._waiting: deque[Think] = deque()
        self._under_way: Think | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = b""

    def ask(self, think: Think) -> None:
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
        self._heard += chunk
        if chunk and not self._heard.endswith(b"\n"):
            return []
        thought = TaskResult(self._under_way.name, error=f"{self._under_way.question}: the thinking process died")
        if chunk:
            said = json.loads(self._heard)
            thought = TaskResult(self._under_way.name, said.get("answer"), said.get("error", ""))
        else:
            self.close()
        self._heard, self._under_way = b"", None
        self._next()
        return [thought]

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
            pass  # it died; the next look finds out

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with suppress(BrokenPipeError):  # a question it did not live to read
                        stream.close()
            self._process = None


def _think(think: Think) -> TaskResult:
    try:
        return TaskResult(think.name, run_task(think.question, think.given))
    except Exception as error:
        return TaskResult(think.name, error=f"{think.question}: {type(error).__name__}: {error}")


def main() -> None:
    """Answer questions until nobody is left to ask them."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    for line in sys.stdin:
        asked = json.loads(line)
        thought = _think(Think(name=asked["name"], question=asked["question"], given=asked["given"], why="asked"))
        out.write(json.dumps({"error": thought.error} if thought.error else {"answer": thought.answer}) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
