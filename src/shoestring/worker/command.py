"""Running any program: parameters in, JSON lines out, SIGTERM when it has to stop."""

from __future__ import annotations

import json
import math
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from shoestring.errors import ShoestringError
from shoestring.kernel.types import Config, SegmentCause
from shoestring.trial import ReportError, TrialHost
from shoestring.worker.arguments import ProgramFiles, fill
from shoestring.worker.containment import SEGMENT, ask_to_leave, dying_with, kill_all, of_segment
from shoestring.worker.process_identity import family
from shoestring.worker.report import LONGEST_LINE, ReportedSnapshot, ReportedStep, SavedFile, parse_line, value_as_text
from shoestring.worker.run_function import FunctionOutcome, died_of, never_reported
from shoestring.worker.subsampling import FractionError, matching

_LOOK_EVERY_S = 0.05
_READS_AFTER_END = 64
"""Reads of 64 kB after a program has ended: a process it left behind may hold its output open and write for ever."""
_LONGEST_LAST_LINE = 500
_SHELLS_SIGNAL = 128
"""A shell whose program was killed by signal 9 exits with 128 + 9."""
_GRACE_S = 10.0
"""Seconds for a program that trains past its target step to save and stop, before it is killed."""


class CommandRun:
    """One run of a program. What it reports and saves goes to the host, everything it prints to the log."""

    def __init__(
        self,
        *,
        host: TrialHost,
        files: ProgramFiles,
        config: Config,
        until_step: int | None,
        first_step: int,
        metric: str | None,
        fraction: float = 1.0,
        fractions: Sequence[float] = (),
        log: IO[bytes],
        own_group: bool,
        lock: int | None = None,
        launched: Callable[[], Collection[int]] | None = None,
    ) -> None:
        self._host = host
        self._files = files
        self._config = config
        self._until_step = math.inf if until_step is None else until_step
        self._until_exit = until_step is None
        """A job of a bag: only its own end ends it, and any number it reports is a metric."""
        self._step = self._first_step = first_step
        self._metric = metric
        self._fraction, self._fractions = fraction, fractions
        self._log = log
        self._own_group = own_group
        """Does the program get a process group of its own? In a worker it belongs to the worker's, and ends with it."""
        self._lock = lock
        """The segment's. The program holds it as well: an attempt is not over while it runs."""
        self._launched = launched
        """What a program that is launched once has started beside its own descendants; None for all others."""
        self._names: set[str] = set()
        self._warnings: list[str] = []
        self._last_error_line = b""
        self._last_line = b""
        """Of its standard output, without reports: the result of a program that does not report."""
        self._printed = b""
        """The first line with the metric and a number in it that is no report."""
        self._as_text = None if metric is None else value_as_text(metric)
        self._terminated_at: float | None = None
        self._must_leave = False
        self._reports_read = 0

    def run(self, command: Sequence[str], folder: Path, environment: dict[str, str]) -> FunctionOutcome:
        try:
            self._files.create(self._config)
            arguments = fill(command, self._config, self._files.provided(environment))
            mark = {SEGMENT: str(self._files.folder)} if self._own_group else {}
            program = subprocess.Popen(
                arguments,
                cwd=folder,
                env={**os.environ, **environment, **mark},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=self._own_group,
                pass_fds=() if self._lock is None else (self._lock,),
                preexec_fn=dying_with(os.getpid()),
            )
        except OSError as error:
            return FunctionOutcome("failed", self._step, _cannot_start(command[0], folder, error))
        try:
            self._read_output(program)
            self._keep_last_line()
            return self._outcome(program.wait())
        except ShoestringError as error:
            return FunctionOutcome("failed", self._step, f"{error} ({error.hint})" if error.hint else str(error))
        finally:
            self._kill(program)
            program.stdout.close()  # type: ignore[union-attr]
            program.stderr.close()  # type: ignore[union-attr]

    def _read_output(self, program: subprocess.Popen[bytes]) -> None:
        unfinished = {program.stdout: b"", program.stderr: b""}
        with selectors.DefaultSelector() as ready:
            for stream in unfinished:
                ready.register(stream, selectors.EVENT_READ)  # type: ignore[arg-type]
            reads_left = _READS_AFTER_END
            while reads_left:
                over = program.poll() is not None  # checked first: its last output is still to be read
                read_any = False
                for key, _ in ready.select(0 if over else _LOOK_EVERY_S):
                    stream = key.fileobj  # type: ignore[assignment]
                    chunk = os.read(key.fd, 1 << 16)
                    if not chunk:
                        ready.unregister(stream)  # type: ignore[arg-type]
                        continue
                    read_any = True
                    self._log.write(chunk)
                    *whole, rest = (unfinished[stream] + chunk).split(b"\n")
                    unfinished[stream] = rest[: LONGEST_LINE + 1]  # the rest of a line that is too long is not kept
                    self._read_lines(whole, stream is program.stderr)
                self._log.flush()
                self._read_reports()
                if not over:
                    self._stop_if_due(program)
                    if not ready.get_map():  # it closed its output and still runs
                        time.sleep(_LOOK_EVERY_S)
                else:
                    reads_left = reads_left - 1 if read_any else 0
            for stream, rest in unfinished.items():
                self._read_lines([rest], stream is program.stderr)

    def _read_lines(self, lines: list[bytes], is_error: bool) -> None:
        for line in lines:
            if is_error:
                self._last_error_line = line.strip() or self._last_error_line
            elif self._handle_line(line):
                continue
            else:
                self._last_line = line.strip() or self._last_line
            if self._as_text is not None and not self._printed and self._as_text.search(line):
                self._printed = line.strip()

    def _keep_last_line(self) -> None:
        if self._last_line:
            with suppress(OSError):  # a full disk: no reason to fail a finished job
                self._files.last_line.write_bytes(self._last_line[:_LONGEST_LAST_LINE])

    def _read_reports(self) -> None:
        with self._files.reports.open("rb") as file:
            file.seek(self._reports_read)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        if not whole and len(text) > LONGEST_LINE:
            whole = len(text)  # too long for a report, and said to be: it must not be read again and again
        self._reports_read += whole
        for line in text[:whole].splitlines():
            self._handle_line(line)

    def _handle_line(self, line: bytes) -> bool:
        """Handle a line; False if it is not a report."""
        try:
            match parse_line(line, self._metric, self._step + 1, self._fraction, any_metric=self._until_exit):
                case ReportedStep(step, metrics):
                    self._names.update(metrics)
                    self._step = max(self._step, step)
                    if step <= self._until_step:
                        self._host.reported(step, metrics)
                case ReportedSnapshot(step, fraction, metrics):
                    wanted = matching(self._fractions, fraction)
                    if wanted is not None:
                        self._host.snapshot(step, wanted, metrics)
                case SavedFile(name, step):
                    self._store(name, step)
                case None:
                    return False
        except (ReportError, FractionError) as error:
            self._warnings.append(str(error))
        return True

    def _store(self, name: str, step: int) -> None:
        """Move what was saved out of the program's reach, and store it. A file becomes a folder with the file in it."""
        began = time.monotonic()
        home = self._files.save_to.resolve()
        source = (home / name).resolve()
        if home not in source.parents or not source.exists():
            raise ReportError(f"{name!r} was announced as saved, but is not in SHOESTRING_SAVE_TO")
        folder = self._host.folder()
        try:
            for item in list(source.iterdir()) if source.is_dir() else [source]:
                os.rename(item, folder / item.name)
            if source.is_dir():
                source.rmdir()
            self._host.saved(step, folder, began)
            self._step = max(self._step, step)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _stop_if_due(self, program: subprocess.Popen[bytes]) -> None:
        now = time.monotonic()
        if self._terminated_at is None:
            leaving = self._host.leaving()
            if program.poll() is not None:
                return  # it ended by itself: that is its outcome, not a halt
            self._must_leave = leaving
            if self._must_leave or self._step > self._until_step:
                self._terminated_at = now
                self._send(program, signal.SIGTERM)
        elif not self._must_leave and now - self._terminated_at > _GRACE_S:
            self._kill(program)
        else:
            self._host.leaving()  # inline, this raises MachineGone, which ends the program

    def _send(self, program: subprocess.Popen[bytes], number: signal.Signals) -> None:
        """To the program and all it started: a shell script that dies alone would leave its child without the signal.
        Not to a shared group: the other workers of a gang must answer it until it has saved."""
        if program.poll() is not None:
            return
        if self._launched is not None:
            ask_to_leave({*family(program.pid), *self._launched()})
            return
        if self._own_group:
            os.killpg(program.pid, number)
            return
        for pid in family(program.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # it has just ended

    def _kill(self, program: subprocess.Popen[bytes]) -> None:
        if self._own_group:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # all of them have ended
            kill_all(lambda: of_segment(self._files.folder))
        elif program.poll() is None:
            program.kill()
        program.wait()

    def _outcome(self, code: int) -> FunctionOutcome:
        cause: SegmentCause = "completed"
        if self._step >= self._until_step and (code == 0 or self._terminated_at is not None):
            cause = "reached"
        elif self._must_leave:
            return FunctionOutcome("halted", self._step, self._warned())
        elif code:
            return FunctionOutcome("failed", self._step, _exit(code, self._last_error_line.decode(errors="replace")))
        missing = never_reported(self._metric, self._names, self._hint())
        if missing and (self._first_step == 0 or self._step > self._first_step):
            cause = "failed"
        else:
            missing = ""
        return FunctionOutcome(
            cause, int(min(self._step, self._until_step)), "; ".join(filter(None, (missing, self._warned())))
        )

    def _hint(self) -> str:
        line = json.dumps({"step": 1, self._metric or "": 0.3})
        if self._printed:
            text = self._printed.decode(errors="replace")[:80]
            return f"it printed {text!r}, which is no report: print a line of JSON, {line}"
        return f"print a line of JSON for each step, {line}"

    def _warned(self) -> str:
        if not self._warnings:
            return ""
        count = len(self._warnings)
        return f"{count} report{'s' if count > 1 else ''} not understood, the first: {self._warnings[0]}"


def _exit(code: int, last_error_line: str) -> str:
    """Why a program failed: its own last words, unless it was killed and had no time for any."""
    said = last_error_line[:500]
    number = -code if code < 0 else code - _SHELLS_SIGNAL
    if number != signal.SIGKILL and code > 0:
        return said or f"exit code {code}"
    died = died_of(number) if code < 0 else f"exit code {code}: what it ran was {died_of(number)}"
    return f"{died}; its last line of errors: {said}" if said else died


def _cannot_start(program: str, folder: Path, error: OSError) -> str:
    if not folder.is_dir():
        return f"the folder {folder} is gone: the command cannot be started in it"
    if isinstance(error, FileNotFoundError):
        return f"command not found: {program!r} (check the spelling, the PATH, or the path from {folder})"
    if isinstance(error, PermissionError):
        return f"may not run {program!r} (is it a program? chmod +x {program})"
    return f"cannot run {program!r}: {error.strerror}"
